import { moneyOf } from '../../core/settings/money.ts';
import type { RequestLog, RequestSum } from '../../ports/request-log.ts';
import type { SavingsAnswer } from '../../ports/ui-api.ts';
import { type ApiCall, numberIn, type UiRoute } from './ui-routes.ts';

/** Bound on the days of an answer: the request log keeps 90. */
const DAYS_MAX = 90;
/** How long the sums of a day are cached, in milliseconds. Later the log may have deleted rows of that day. */
const KEPT_MS = 600_000;

/** Returns the call of the savings view, which answers with the sums of some days; see RequestSum. */
export function savingsRoutes(requestLog: RequestLog, today: () => number): readonly UiRoute[] {
  const sums = new DaySums(requestLog);
  return [['GET savings', (call) => savings(sums, today(), call)]];
}

interface KeptDay {
  readonly at: number;
  /** The id of the newest request in the log when these sums were read. */
  readonly newest: string;
  readonly sums: readonly RequestSum[];
}

/**
 * Caches the sums of each day, so that a call does not read the rows of 90 days. Sums are stale after KEPT_MS; those of
 * today and yesterday also after a new request. Each query reads only one day, so that no recall waits for long.
 */
class DaySums {
  readonly #requestLog: RequestLog;
  readonly #kept = new Map<number, KeptDay>();

  constructor(requestLog: RequestLog) {
    this.#requestLog = requestLog;
  }

  /** Returns the sums of the days that begin at these times, newest first. */
  async of(days: readonly number[], now: number): Promise<readonly RequestSum[]> {
    const [row] = await this.#requestLog.list({ limit: 1 });
    const newest = row?.id ?? '';
    const sums: RequestSum[] = [];
    for (const [at, since] of days.entries()) {
      const until = days[at - 1] ?? dayAfter(since);
      const isOver = at > 1;
      const kept = this.#kept.get(since);
      const isFresh = kept !== undefined && now >= kept.at && now - kept.at < KEPT_MS;
      if (isFresh && (isOver || kept.newest === newest)) {
        sums.push(...kept.sums);
        continue;
      }
      // oxlint-disable-next-line no-await-in-loop -- Other calls of the store may come in between.
      const found = await this.#requestLog.sum({ since, until });
      this.#kept.set(since, { at: now, newest, sums: found });
      sums.push(...found);
    }
    this.#drop(now);
    return sums;
  }

  #drop(now: number): void {
    const oldest = now - (DAYS_MAX + 1) * DAY_MS;
    for (const since of this.#kept.keys()) if (since < oldest) this.#kept.delete(since);
  }
}

/**
 * Returns when the next day begins. A query of today also ends at that time, because a wrong clock may have left rows
 * with later times.
 */
export function dayAfter(begin: number): number {
  const date = new Date(begin);
  return date.setDate(date.getDate() + 1);
}

const DAY_MS = 86_400_000;

async function savings(kept: DaySums, now: number, { query }: ApiCall): Promise<SavingsAnswer> {
  const days = numberIn(query, 'days', { fallback: 14, max: DAYS_MAX });
  const begins = beginsOf(now, Math.max(1, days));
  const sums = await kept.of(begins, now);
  return {
    since: begins.at(-1) ?? now,
    sums: sums.map((sum) => ({
      ...sum,
      // A login is paid by the month, so its requests have no cost in dollars.
      money: sum.isLogin === 1 ? null : (moneyOf(sum.model, sum.price, sum.usage) ?? null),
    })),
  };
}

/**
 * Returns when each of the last days began, today first. Each begins at midnight, because a part of a day would look
 * like a day with few requests.
 */
function beginsOf(now: number, days: number): readonly number[] {
  return Array.from({ length: days }, (_, back) => {
    const date = new Date(now);
    date.setHours(0, 0, 0, 0);
    date.setDate(date.getDate() - back);
    return date.getTime();
  });
}
