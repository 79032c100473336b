import { randomBytes } from 'node:crypto';
import type { ToolOutput } from '../core/outputs.ts';
import { NONCE_BYTES, proofOf } from '../core/proofs.ts';
import type { Clock } from '../ports/clock.ts';
import type { Holding, Memory } from '../ports/memory.ts';
import { withinDeadline } from './memory-deadline.ts';

/**
 * Has the memory prove, in this very request, that it holds what is about to be left out. A memory
 * that is slow, down or lying proves nothing; then nothing is left out, and the request goes on.
 */

/** `unproven`: one of its answers was wrong, so none of them counts. */
export type Possession =
  | { readonly kind: 'proven'; readonly digests: ReadonlySet<string> }
  | { readonly kind: 'unproven' }
  | { readonly kind: 'degraded' };

// After a wrong proof the memory is not asked again for so long (hosted-design.md, rule 7).
const DISTRUST_MS = 15_000;

const NOTHING_PROVEN: Possession = { kind: 'proven', digests: new Set() };

export class PossessionCheck {
  readonly #memory: Memory;
  readonly #clock: Clock;
  #distrustedUntil = -Infinity;

  constructor(memory: Memory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Never throws. Resolves within `deadlineMs`. */
  async check(call: {
    readonly outputs: readonly ToolOutput[];
    readonly space: string;
    readonly deadlineMs: number;
  }): Promise<Possession> {
    const { outputs, space } = call;
    if (outputs.length === 0) return NOTHING_PROVEN;
    if (this.#clock.monotonic() < this.#distrustedUntil) return { kind: 'unproven' };
    const textOf = new Map(outputs.map(({ digest, text }) => [digest, text]));
    const nonce = randomBytes(NONCE_BYTES);
    const question = { space, digests: [...textOf.keys()], nonce };
    const holdings = await withinDeadline(call.deadlineMs, (signal) =>
      this.#memory.hold(question, signal),
    ).catch(() => undefined);
    if (holdings === undefined) return { kind: 'degraded' };
    const digests = provenDigests(holdings, textOf, nonce);
    if (digests !== undefined) return { kind: 'proven', digests };
    this.#distrustedUntil = this.#clock.monotonic() + DISTRUST_MS;
    return { kind: 'unproven' };
  }
}

/** Undefined when one answer is wrong, doubled or was not asked for. */
function provenDigests(
  holdings: readonly Holding[],
  textOf: ReadonlyMap<string, string>,
  nonce: Uint8Array,
): ReadonlySet<string> | undefined {
  const proven = new Set<string>();
  for (const { digest, proof } of holdings) {
    const text = textOf.get(digest);
    if (text === undefined || proven.has(digest) || proof !== proofOf(nonce, text))
      return undefined;
    proven.add(digest);
  }
  return proven;
}
