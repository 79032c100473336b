import type { Clock } from '../ports/clock.ts';

/**
 * The moment by which everything that one request asks of memory and ledger must be answered. The
 * handler makes it, and every step is given the same one.
 */
export class Deadline {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #at: number;

  constructor(clock: Pick<Clock, 'monotonic'>, ms: number) {
    this.#clock = clock;
    this.#at = clock.monotonic() + ms;
  }

  /** Milliseconds, never negative. */
  get msLeft(): number {
    return Math.max(0, this.#at - this.#clock.monotonic());
  }
}
