import { randomBytes } from 'node:crypto';
import type { TextRole } from '../core/memory/reference.ts';
import { NONCE_BYTES, textProof } from '../core/shortening/proofs.ts';
import type { Removal } from '../core/shortening/removal.ts';
import type { Clock } from '../ports/clock.ts';
import type { Holding, RequestMemory } from '../ports/memory.ts';
import { withinDeadline } from './deadline.ts';

/**
 * Has the memory prove, in this very request, that it holds what is about to be left out. A memory
 * that is slow, down or lying proves nothing; then nothing is left out, and the request continues.
 *
 * A memory on this machine can say at once that nothing can have gone since an earlier proof: its files
 * are the same, and no process has committed or deleted anything. Then that proof counts in this
 * request, and the memory is asked only for the texts that it has not proven.
 */

/** A text of the request that the memory is to prove. */
export interface AskedText {
  /** textDigest() of it. */
  readonly digest: string;
  readonly role: TextRole;
  readonly text: string;
}

/** `unproven`: one of its answers was wrong, so none of them counts. */
export type Possession =
  | { readonly kind: 'proven'; readonly digests: ReadonlySet<string> }
  | { readonly kind: 'unproven' }
  | { readonly kind: 'degraded' };

/** An answer that is on its way. */
export interface Proof {
  readonly texts: readonly AskedText[];
  /** Never rejects. */
  readonly possession: Promise<Possession>;
}

/** All that these outputs and exchanges say. */
export function textsOf(removal: Removal): readonly AskedText[] {
  const { repeated, batch, omitted, omissions } = removal;
  return [
    ...[...repeated, ...batch].map(({ digest, text }) => ({ digest, role: 'tool' as const, text })),
    ...[...omitted, ...omissions].flatMap(({ texts }) => texts),
  ];
}

/** As if the memory held all of them: for what is measured and not left out. */
export function provenUnasked(texts: readonly AskedText[]): Proof {
  const digests = new Set(texts.map(({ digest }) => digest));
  return { texts, possession: Promise.resolve({ kind: 'proven', digests }) };
}

// Long enough for a restart or a failover to end, short enough to go unnoticed when it was one.
const DISTRUST_MS = 15_000;

/** A stored text that is proven is noted as used once a day, and its file is looked after once an hour. */
const PROOF_AGE_MAX_MS = 3_600_000;
/** The proven texts of a space that are kept in mind, 50 bytes each: as many as svc keeps outputs. */
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
   * What earlier requests have proven, by space. It counts while the memory has this version, because no text
   * can have gone since. Conversations share it, as forks share texts.
   */
  readonly #proven = new Map<string, Set<string>>();
  #version: number | undefined;
  #provenSince = -Infinity;
  #distrustedUntil = -Infinity;

  constructor(memory: RequestMemory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Asks at once. The possession is known within `deadlineMs`. */
  begin(call: PossessionCall): Proof {
    return { texts: call.texts, possession: this.#check(call) };
  }

  async #check(call: PossessionCall): Promise<Possession> {
    const { texts, space } = call;
    if (texts.length === 0) return NOTHING_PROVEN;
    if (this.#clock.monotonic() < this.#distrustedUntil) return { kind: 'unproven' };
    // Looked at before the question: if a text goes meanwhile, the version is another one afterwards.
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

  /** The texts of the space that are proven for this version. */
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

/** Undefined when one answer is wrong, doubled or was not asked for. */
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
