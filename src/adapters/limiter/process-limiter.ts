import { Recent } from '../../core/bytes/recent.ts';
import { takeTurn } from '../../core/service/rates.ts';
import type { Clock } from '../../ports/clock.ts';
import type { LimitAnswer, LimitAsk, Limiter } from '../../ports/limiter.ts';

/** The limiter of a service that runs as one process: one number for each bucket, in memory. */

/** More than this and the longest unused are forgotten: 100,000 take about 10 MB. */
const BUCKETS_MAX = 100_000;

export class ProcessLimiter implements Limiter {
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #due = new Recent<string, number>(BUCKETS_MAX);

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
  }

  async take(asks: readonly LimitAsk[]): Promise<LimitAnswer> {
    const now = this.#clock.monotonic();
    const turns = asks.map((ask) => ({
      ask,
      turn: takeTurn(ask.rate, this.#due.get(ask.bucket), now),
    }));
    const [worst] = turns.toSorted((one, other) => other.turn.waitMs - one.turn.waitMs);
    if (worst !== undefined && worst.turn.waitMs > 0) {
      return { refusedBy: worst.ask.name, waitMs: worst.turn.waitMs };
    }
    for (const { ask, turn } of turns) this.#due.set(ask.bucket, turn.dueAt);
    return { refusedBy: undefined, waitMs: 0 };
  }
}
