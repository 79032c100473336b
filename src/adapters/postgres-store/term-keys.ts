import { createHmac } from 'node:crypto';
import { forgetOldest } from '../../core/bytes/forget-oldest.ts';
import { timeTerms } from '../../core/recall/dates.ts';

/**
 * Words as the index holds them: 64 bits of a keyed hash, so no dictionary of anybody's words lies in
 * the database. A tenant has one token a word, and a space turns it into a key of its own: a list of
 * places is then of one space, and the same words of two spaces of a tenant still compare equal.
 */

const TOKEN_BYTES = 8;
/** About 100 bytes each. A language has some 30,000 words that are said, code a few more. */
const TOKENS_MAX = 40_000;
const TENANTS_MAX = 64;
/** The binary form of an array: three numbers, two for each dimension, and each element's size. */
const ARRAY_HEAD = 20;
const ELEMENT_BYTES = 4 + TOKEN_BYTES;

interface TenantTokens {
  readonly key: Buffer;
  /** By term, as eight characters of latin1. */
  readonly tokens: Map<string, string>;
  /** Words of time by their token: the ranking looks at their letters. */
  readonly known: ReadonlyMap<string, string>;
}

export class TermKeys {
  readonly #secret: Buffer;
  readonly #tenants = new Map<string, TenantTokens>();

  /** `secret`: 32 bytes that the database keeps. */
  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  of(tenant: string): TenantTermKeys {
    const found = this.#tenants.get(tenant) ?? this.#make(tenant);
    this.#tenants.delete(tenant);
    this.#tenants.set(tenant, found);
    forgetOldest(this.#tenants, TENANTS_MAX);
    return new TenantTermKeys(found);
  }

  #make(tenant: string): TenantTokens {
    const key = createHmac('sha256', this.#secret).update(`tenant ${tenant}`).digest();
    const tokens = new Map<string, string>();
    const known = new Map(timeTerms().map((term) => [tokenOf(key, term), term]));
    return { key, tokens, known };
  }
}

/** For one call: the letters of its question's words are known to it alone. */
export class TenantTermKeys {
  readonly #own: TenantTokens;
  readonly #expected = new Map<string, string>();
  readonly #masks = new Map<number, Buffer>();

  constructor(own: TenantTokens) {
    this.#own = own;
  }

  expect(terms: Iterable<string>): void {
    for (const term of terms) this.#expected.set(this.#tokenOf(term), term);
  }

  /** As the database's bigint. */
  keyOf(space: number, term: string): string {
    const key = Buffer.from(this.#tokenOf(term), 'latin1');
    turn(key, 0, this.#maskOf(space));
    return key.readBigInt64BE().toString();
  }

  keysOf(space: number, terms: readonly string[]): string[] {
    return terms.map((term) => this.keyOf(space, term));
  }

  /** The terms of a passage in order: with their letters where those are known. */
  termsOf(space: number, sent: Uint8Array): string[] {
    const keys = Buffer.from(sent);
    const mask = this.#maskOf(space);
    const terms: string[] = [];
    for (let at = ARRAY_HEAD + 4; at < keys.length; at += ELEMENT_BYTES) {
      turn(keys, at, mask);
      const token = keys.toString('latin1', at, at + TOKEN_BYTES);
      terms.push(this.#expected.get(token) ?? this.#own.known.get(token) ?? token);
    }
    return terms;
  }

  #tokenOf(term: string): string {
    const { tokens, key } = this.#own;
    const known = tokens.get(term);
    if (known !== undefined) return known;
    const made = tokenOf(key, term);
    if (tokens.size >= TOKENS_MAX) tokens.clear();
    tokens.set(term, made);
    return made;
  }

  #maskOf(space: number): Buffer {
    const known = this.#masks.get(space);
    if (known !== undefined) return known;
    const made = createHmac('sha256', this.#own.key).update(`space ${space}`).digest();
    this.#masks.set(space, made);
    return made;
  }
}

function tokenOf(key: Buffer, term: string): string {
  return createHmac('sha256', key)
    .update(`term ${term}`)
    .digest()
    .toString('latin1', 0, TOKEN_BYTES);
}

/** A key of a space and back. */
function turn(bytes: Buffer, at: number, mask: Buffer): void {
  for (let byte = 0; byte < TOKEN_BYTES; byte += 1) {
    bytes[at + byte] = (bytes[at + byte] ?? 0) ^ (mask[byte] ?? 0);
  }
}
