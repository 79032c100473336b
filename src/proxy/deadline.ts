import type { Clock } from '../ports/clock.ts';
import { MemoryError } from '../ports/memory.ts';

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
