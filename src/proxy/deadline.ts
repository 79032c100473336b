import type { Clock } from '../ports/clock.ts';
import type { Steps } from '../core/bytes/steps.ts';
import { MemoryError } from '../core/errors.ts';

/**
 * The time by which memory and ledger must have answered for one request. Only what a bound conversation repeats has
 * longer; see BOUND_MS.
 */
export class Deadline {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #at: number;

  constructor(clock: Pick<Clock, 'monotonic'>, ms: number) {
    this.#clock = clock;
    this.#at = clock.monotonic() + ms;
  }

  /** Milliseconds until the deadline; 0 if it has passed. */
  get msLeft(): number {
    return Math.max(0, this.#at - this.#clock.monotonic());
  }
}

/**
 * Runs `work` under a deadline. After `ms` milliseconds it aborts the signal, and rejects with MemoryError 'timeout',
 * even if `work` ignores the signal. If `work` rejects earlier, it rejects with the same error.
 */
export async function withinDeadline<Result>(
  ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const deadline = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      const error = new MemoryError('timeout', 'The memory did not answer in time.');
      deadline.abort(error);
      reject(error);
    }, ms);
  });
  try {
    return await Promise.race([work(deadline.signal), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Runs long work in slices of SLICE_MS, so that no request blocks the others for long. If several works run, they take
 * turns: one slice in each round of the event loop.
 */
export class Slices {
  readonly #clock: Clock;
  /** Works that wait for a slice, oldest first. */
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs the steps, the first slice at once. Rejects with what a step throws. */
  async run<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      const { done, value } = this.#slice(steps);
      if (done === true) return value;
      // oxlint-disable-next-line no-await-in-loop -- Other work runs between two slices.
      await this.#pause();
    }
  }

  #slice<Result>(steps: Steps<Result>): IteratorResult<void, Result> {
    const until = this.#clock.monotonic() + SLICE_MS;
    for (;;) {
      const step = steps.next();
      if (step.done === true || this.#clock.monotonic() >= until) return step;
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(() => this.#next());
    });
  }

  #next(): void {
    this.#waiting.shift()?.();
    if (this.#waiting.length > 0) setImmediate(() => this.#next());
  }
}

/** Milliseconds of a slice. An ordinary request of 1 MB is read in one. A single step may take up to 40 ms more. */
const SLICE_MS = 8;
