import { createHmac } from 'node:crypto';
import { Recent } from '../../../../src/core/bytes/recent.ts';
import { Known } from '../../../../src/core/recall/known.ts';
import { timeTerms } from '../../../../src/core/recall/dates.ts';
import { ARRAY_HEAD, ELEMENT_HEAD, newArray } from './wire-values.ts';

/**
 * Converts words to the keys of the index: 64 bits of a keyed hash, so that the index itself contains no words. A
 * word's token is its hash with the tenant's secret. The word's key in a space is this token, XORed with a mask of the
 * space. So a key finds passages of one space only, and svc can compare words of two spaces by their tokens.
 */

/** Up to twice as many tokens of a tenant are cached: see Known. A language has 30,000 common words, 100 bytes each. */
const TOKENS_MAX = 32_768;
const TENANTS_MAX = 64;
const BIGINT_BYTES = 8;
const ELEMENT_BYTES = ELEMENT_HEAD + BIGINT_BYTES;

/** A hash of 64 bits as two numbers, because a BigInt would cost an allocation for each word. */
interface Token {
  readonly high: number;
  readonly low: number;
}

interface TenantTokens {
  readonly key: Buffer;
  readonly tokens: Known<Token>;
  /** The words that state a time, by their tokens, because the ranking must know which words these are. */
  readonly texts: TokenTexts;
}

/** A token with its word. `next`: another token with the same low half. */
interface TokenText extends Token {
  readonly text: string;
  readonly next: TokenText | undefined;
}

/** Words by the low half of their token. */
type TokenTexts = Map<number, TokenText>;

export class TermKeys {
  readonly #secret: Buffer;
  readonly #tenants = new Recent<string, TenantTokens>(TENANTS_MAX);

  /** `secret`: 32 random bytes that are stored in the database. */
  constructor(secret: Buffer) {
    this.#secret = secret;
  }

  of(tenant: string): TenantTermKeys {
    const found = this.#tenants.get(tenant) ?? this.#make(tenant);
    this.#tenants.set(tenant, found);
    return new TenantTermKeys(found);
  }

  #make(tenant: string): TenantTokens {
    const key = createHmac('sha256', this.#secret).update(`tenant ${tenant}`).digest();
    const texts: TokenTexts = new Map();
    for (const term of timeTerms()) addText(texts, tokenOf(key, `term ${term}`), term);
    return { key, tokens: new Known<Token>(TOKENS_MAX), texts };
  }
}

/**
 * Computes a tenant's keys for one call, and finds the words of keys, if the call has named these words before or if
 * they state a time.
 */
export class TenantTermKeys {
  readonly #own: TenantTokens;
  readonly #texts: TokenTexts = new Map();
  readonly #masks = new Map<number, Token>();

  constructor(own: TenantTokens) {
    this.#own = own;
  }

  /** Adds words whose keys termsOf() then converts back. */
  expect(terms: Iterable<string>): void {
    for (const term of terms) addText(this.#texts, this.#tokenOf(term), term);
  }

  /** Returns a word's key in a space, as the database's bigint. */
  keyOf(space: number, term: string): string {
    return this.arrayOf(space, [[term]])
      .readBigInt64BE(ARRAY_HEAD + ELEMENT_HEAD)
      .toString();
  }

  keysOf(space: number, terms: readonly string[]): string[] {
    return terms.map((term) => this.keyOf(space, term));
  }

  /** Returns the keys as a bigint[] in the database's binary form. */
  arrayOf(space: number, lists: readonly (readonly string[])[]): Buffer {
    const count = lists.reduce((sum, { length }) => sum + length, 0);
    const mask = this.#maskOf(space);
    const array = newArray('bigint', count, count * BIGINT_BYTES);
    const view = new DataView(array.buffer, array.byteOffset, array.length);
    let at = ARRAY_HEAD;
    for (const terms of lists) {
      for (const term of terms) {
        const { high, low } = this.#tokenOf(term);
        view.setInt32(at, BIGINT_BYTES);
        view.setInt32(at + 4, high ^ mask.high);
        view.setInt32(at + 8, low ^ mask.low);
        at += ELEMENT_BYTES;
      }
    }
    return array;
  }

  /** Converts a passage's keys to words, in their order. An unknown word becomes four characters made of its token. */
  termsOf(space: number, sent: Buffer): string[] {
    const mask = this.#maskOf(space);
    const view = new DataView(sent.buffer, sent.byteOffset, sent.length);
    const terms: string[] = [];
    for (let at = ARRAY_HEAD + ELEMENT_HEAD; at < sent.length; at += ELEMENT_BYTES) {
      const high = view.getInt32(at) ^ mask.high;
      terms.push(this.#textOf(high, view.getInt32(at + 4) ^ mask.low));
    }
    return terms;
  }

  #textOf(high: number, low: number): string {
    const known = textIn(this.#texts.get(low), high) ?? textIn(this.#own.texts.get(low), high);
    if (known !== undefined) return known;
    const made = String.fromCharCode(high >>> 16, high & 0xffff, low >>> 16, low & 0xffff);
    addText(this.#texts, { high, low }, made);
    return made;
  }

  #tokenOf(term: string): Token {
    const { tokens, key } = this.#own;
    const known = tokens.get(term);
    if (known !== undefined) return known;
    const made = tokenOf(key, `term ${term}`);
    tokens.set(term, made);
    return made;
  }

  #maskOf(space: number): Token {
    const known = this.#masks.get(space);
    if (known !== undefined) return known;
    const made = tokenOf(this.#own.key, `space ${space}`);
    this.#masks.set(space, made);
    return made;
  }
}

function tokenOf(key: Buffer, text: string): Token {
  const hash = createHmac('sha256', key).update(text).digest();
  return { high: hash.readInt32BE(0), low: hash.readInt32BE(4) };
}

function addText(texts: TokenTexts, { high, low }: Token, text: string): void {
  texts.set(low, { high, low, text, next: texts.get(low) });
}

function textIn(first: TokenText | undefined, high: number): string | undefined {
  for (let one = first; one !== undefined; one = one.next) if (one.high === high) return one.text;
  return undefined;
}
