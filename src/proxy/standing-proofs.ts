import type { Clock } from '../ports/clock.ts';
import type { Memory } from '../ports/memory.ts';

/** A stored text that is proven is noted as used once a day, and its file is looked after once an hour. */
const PROOF_AGE_MAX_MS = 3_600_000;
/** As many as svc keeps outputs in mind, 50 bytes each. */
const PROVEN_MAX = 50_000;

export interface Standing {
  /** The memory's when it was asked for these proofs, or would be now. */
  readonly version: number | undefined;
  readonly space: string;
  readonly digests: ReadonlySet<string>;
}

/**
 * The proofs of earlier requests that still count, because nothing can have gone since. They are kept
 * for the whole process: the memory's version is one for all conversations, and forks share texts.
 */
export class StandingProofs {
  readonly #memory: Memory;
  readonly #clock: Clock;
  readonly #bySpace = new Map<string, Set<string>>();
  #version: number | undefined;
  #since = -Infinity;
  #count = 0;

  constructor(memory: Memory, clock: Clock) {
    this.#memory = memory;
    this.#clock = clock;
  }

  /** Looks now whether the memory is still the same. */
  in(space: string): Standing {
    const version = this.#memory.holdVersion?.();
    const isOld = this.#clock.monotonic() - this.#since > PROOF_AGE_MAX_MS;
    if (version === undefined || version !== this.#version || isOld) this.clear();
    if (version !== this.#version) {
      this.#version = version;
      this.#since = this.#clock.monotonic();
    }
    return { version, space, digests: this.#bySpace.get(space) ?? NO_DIGESTS };
  }

  /**
   * `standing`: the version from before the call to the memory. If a text was deleted since, the
   * version has changed.
   */
  add({ version, space }: Standing, proven: ReadonlySet<string>): void {
    if (version === undefined || version !== this.#version) return;
    if (this.#count + proven.size > PROVEN_MAX) return;
    const digests = new Set([...(this.#bySpace.get(space) ?? NO_DIGESTS), ...proven]);
    this.#count += proven.size;
    this.#bySpace.set(space, digests);
  }

  clear(): void {
    this.#bySpace.clear();
    this.#version = undefined;
    this.#count = 0;
  }
}

const NO_DIGESTS: ReadonlySet<string> = new Set();
