import type { Clock } from '../ports/clock.ts';
import type { Steps } from '../core/bytes/steps.ts';
import { MemoryError } from '../core/errors.ts';

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

/**
 * The one deadline of everything that a request asks of the memory. Rejects with MemoryError
 * 'timeout' after `ms` milliseconds, also when the memory ignores the signal; what the work itself
 * throws passes through.
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
 * Runs long work in slices, so that no request holds up the others (R39). Works that are under way at
 * the same time take slices by turns, one in each round of the event loop.
 */
export class Slices {
  readonly #clock: Clock;
  /** Works that wait for a slice, the oldest first. */
  readonly #waiting: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The first slice is taken at once: most work is done with it. Rejects with what a step throws. */
  async run<Result>(steps: Steps<Result>): Promise<Result> {
    for (;;) {
      const { done, value } = this.#slice(steps);
      if (done === true) return value;
      // oxlint-disable-next-line no-await-in-loop -- Others go first: that is the point.
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

/** A step takes up to 40 ms more in the worst case; an ordinary request of 1 MB is read in one slice. */
const SLICE_MS = 8;
