import { randomBytes } from 'node:crypto';
import type { TextRole } from '../core/memory/reference.ts';
import { NONCE_BYTES, textProof } from '../core/memory-api/canonical.ts';
import type { Removal } from '../core/shortening/removal.ts';
import type { Clock } from '../ports/clock.ts';
import type { Holding, RequestMemory } from '../ports/memory.ts';
import { withinDeadline } from './deadline.ts';

/**
 * Asks the memory to prove, during this request, that it has the texts that svc wants to leave out. If the memory is
 * slow, unreachable or wrong, none of the texts that it was asked about is left out, and the request continues.
 * A memory on this machine can show that no text was deleted or changed since an earlier proof (`holdVersion`). Then
 * the earlier proof counts, and the memory is asked only about new texts.
 */

/** A text of the request that the memory must prove. */
export interface AskedText {
  /** The digest of the text: textDigest(). */
  readonly digest: string;
  readonly role: TextRole;
  readonly text: string;
}

/**
 * The result of a proof. `unproven`: one answer was wrong, now or in the last DISTRUST_MS, so all are ignored.
 * `degraded`: the memory did not answer.
 */
export type Possession =
  | { readonly kind: 'proven'; readonly digests: ReadonlySet<string> }
  | { readonly kind: 'unproven' }
  | { readonly kind: 'degraded' };

/** A proof that the memory may still be computing. */
export interface Proof {
  readonly texts: readonly AskedText[];
  /** Resolves with the result. Never rejects. */
  readonly possession: Promise<Possession>;
}

/** Returns all texts that are to be left out. */
export function textsOf(removal: Removal): readonly AskedText[] {
  const { repeated, batch, omitted, omissions } = removal;
  return [
    ...[...repeated, ...batch].map(({ digest, text }) => ({ digest, role: 'tool' as const, text })),
    ...[...omitted, ...omissions].flatMap(({ texts }) => texts),
  ];
}

/** Returns a proof without asking the memory, for texts that shadow mode only measures. */
export function provenUnasked(texts: readonly AskedText[]): Proof {
  const digests = new Set(texts.map(({ digest }) => digest));
  return { texts, possession: Promise.resolve({ kind: 'proven', digests }) };
}

// How long a memory is not asked after a wrong answer, in milliseconds. A restart or a failover mostly ends by then.
const DISTRUST_MS = 15_000;

/**
 * How old a proof may be, in milliseconds. A new one also makes the memory mark the texts as used, and check
 * the files of outputs.
 */
const PROOF_AGE_MAX_MS = 3_600_000;
/**
 * Bound on the proven digests of a space, of 50 bytes each: some three times the usual number of stored outputs
 * (BYTES_MAX in src/adapters/store/outputs.ts). The memory is asked about further ones in every request.
 */
const PROVEN_MAX = 50_000;
const NOTHING_PROVEN: Possession = { kind: 'proven', digests: new Set() };

interface PossessionCall {
  readonly texts: readonly AskedText[];
  readonly space: string;
  readonly deadlineMs: number;
}

export class PossessionCheck {
  readonly #memory: RequestMemory;
  readonly #clock: Clock;
  /**
   * The digests that earlier requests have proven, by space. They count as long as the memory's version is the same:
   * no text was deleted or changed since.
   */
  readonly #proven = new Map<string, Set<string>>();
  #version: number | undefined;
  #provenSince = -Infinity;
  #distrustedUntil = -Infinity;

  constructor(memory: RequestMemory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /**
   * Makes the memory prove that it has the texts; earlier proofs count. Resolves within `deadlineMs`, never rejects.
   */
  async check(call: PossessionCall): Promise<Possession> {
    const { texts, space } = call;
    if (texts.length === 0) return NOTHING_PROVEN;
    if (this.#clock.monotonic() < this.#distrustedUntil) return { kind: 'unproven' };
    // Reads the version before it asks. If a text is deleted meanwhile, the version is another one afterwards.
    const version = this.#memory.holdVersion?.();
    const known = this.#provenAt(version, space);
    const unproven = texts.filter(({ digest }) => !known.has(digest));
    if (unproven.length === 0) return { kind: 'proven', digests: known };
    const proven = await this.#ask({ ...call, texts: unproven });
    if (proven === 'degraded') return { kind: 'degraded' };
    if (proven !== 'wrong') {
      const digests = new Set([...known, ...proven]);
      if (version !== undefined && version === this.#version) this.#keep(space, proven);
      return { kind: 'proven', digests };
    }
    this.#proven.clear();
    this.#version = undefined;
    this.#distrustedUntil = this.#clock.monotonic() + DISTRUST_MS;
    this.#memory.distrust?.(DISTRUST_MS);
    return { kind: 'unproven' };
  }

  /** Returns the digests of the space that were proven at this version. */
  #provenAt(version: number | undefined, space: string): ReadonlySet<string> {
    const now = this.#clock.monotonic();
    const isOld = now - this.#provenSince > PROOF_AGE_MAX_MS;
    if (version === undefined || version !== this.#version || isOld) {
      this.#proven.clear();
      this.#version = version;
      this.#provenSince = now;
    }
    return this.#proven.get(space) ?? NO_DIGESTS;
  }

  #keep(space: string, proven: ReadonlySet<string>): void {
    const kept = this.#proven.get(space) ?? new Set<string>();
    if (kept.size + proven.size > PROVEN_MAX) return;
    for (const digest of proven) kept.add(digest);
    this.#proven.set(space, kept);
  }

  async #ask(call: PossessionCall): Promise<ReadonlySet<string> | 'wrong' | 'degraded'> {
    const asked = new Map(call.texts.map((text) => [text.digest, text]));
    const nonce = randomBytes(NONCE_BYTES);
    const question = { space: call.space, digests: [...asked.keys()], nonce };
    const holdings = await withinDeadline(call.deadlineMs, (signal) =>
      this.#memory.hold(question, signal),
    ).catch(() => undefined);
    if (holdings === undefined) return 'degraded';
    return provenDigests(holdings, asked, nonce) ?? 'wrong';
  }
}

/** Returns the proven digests; undefined if a proof is wrong, repeated, or of a text that was not asked about. */
function provenDigests(
  holdings: readonly Holding[],
  texts: ReadonlyMap<string, AskedText>,
  nonce: Uint8Array,
): ReadonlySet<string> | undefined {
  const proven = new Set<string>();
  for (const { digest, proof } of holdings) {
    const asked = texts.get(digest);
    if (asked === undefined || proven.has(digest)) return undefined;
    if (proof !== textProof(nonce, asked.role, asked.text)) return undefined;
    proven.add(digest);
  }
  return proven;
}

const NO_DIGESTS: ReadonlySet<string> = new Set();
