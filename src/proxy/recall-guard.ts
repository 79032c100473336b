import type { MemoryState } from '../core/evidence.ts';
import type { Clock } from '../ports/clock.ts';
import { MemoryError, type MemoryFailure } from '../ports/memory.ts';

/**
 * Asks what may be slow, down or broken, and never waits longer than the deadline. What keeps
 * failing is left alone for a while, so that a dead memory costs nothing. Whatever goes wrong here
 * becomes a state.
 */

export type Guarded<Value> =
  | { readonly isAnswered: true; readonly value: Value }
  | { readonly isAnswered: false; readonly state: MemoryState };

// R23: after three failures in a row the memory is presumed down, and asked again after two seconds.
const FAILURES_MAX = 3;
const PAUSE_MS = 2_000;

const STATE_OF_FAILURE: Readonly<Record<MemoryFailure, MemoryState>> = {
  timeout: 'degraded_timeout',
  unavailable: 'degraded_unavailable',
  denied: 'degraded_denied',
  rate_limited: 'degraded_rate_limited',
  invalid: 'degraded_invalid',
};

/** One for each thing that can fail by itself. */
export class RecallGuard {
  readonly #clock: Clock;
  #failures = 0;
  #pausedUntil = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Never throws. Resolves within `deadlineMs`, also when the call ignores its signal. */
  async ask<Value>(
    call: (signal: AbortSignal) => Promise<Value>,
    deadlineMs: number,
  ): Promise<Guarded<Value>> {
    if (this.#isPaused()) return { isAnswered: false, state: 'degraded_unavailable' };
    const deadline = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        const error = new MemoryError('timeout', 'The memory did not answer in time.');
        deadline.abort(error);
        reject(error);
      }, deadlineMs);
    });
    try {
      const value = await Promise.race([call(deadline.signal), late]);
      this.#failures = 0;
      return { isAnswered: true, value };
    } catch (error) {
      return { isAnswered: false, state: this.#failed(error) };
    } finally {
      clearTimeout(timer);
    }
  }

  #isPaused(): boolean {
    return this.#failures >= FAILURES_MAX && this.#clock.monotonic() < this.#pausedUntil;
  }

  #failed(error: unknown): MemoryState {
    this.#failures += 1;
    // Half-open: after the pause one request asks again, and one more failure starts a new pause.
    if (this.#failures >= FAILURES_MAX) this.#pausedUntil = this.#clock.monotonic() + PAUSE_MS;
    return STATE_OF_FAILURE[error instanceof MemoryError ? error.reason : 'unavailable'];
  }
}
