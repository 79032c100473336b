import { moneyOf } from '../../core/settings/money.ts';
import type { RequestLog, RequestSum } from '../../ports/request-log.ts';
import type { SavingsAnswer } from '../../ports/ui-api.ts';
import { type ApiCall, numberIn, type UiRoute } from './ui-routes.ts';

/** The sums of the savings view: one per day, client, project and model. */

/** Bound on days: the request log keeps 90. */
const DAYS_MAX = 90;
/** How long the sums of a day are cached, because the log drops old rows one after the other. */
const KEPT_MS = 600_000;

export function savingsRoutes(requestLog: RequestLog, today: () => number): readonly UiRoute[] {
  const sums = new DaySums(requestLog);
  return [['GET savings', (call) => savings(sums, today(), call)]];
}

interface KeptDay {
  readonly at: number;
  /** The id of the newest request in the log when the sums were read. */
  readonly newest: string;
  readonly sums: readonly RequestSum[];
}

/**
 * Caches the sums of each day. A call reads the rows of one day, so that no recall waits for the rows of 90 days. A
 * day that ended a day ago gets no more requests.
 */
class DaySums {
  readonly #requestLog: RequestLog;
  readonly #kept = new Map<number, KeptDay>();

  constructor(requestLog: RequestLog) {
    this.#requestLog = requestLog;
  }

  /** Returns the sums of days, newest day first. */
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

/** Returns when the next day begins. A clock that was ahead has left rows with later days, which must not count. */
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
      // No cost in dollars for a login, which is paid by the month.
      money: sum.isLogin === 1 ? null : (moneyOf(sum.model, sum.price, sum.usage) ?? null),
    })),
  };
}

/** Returns the beginnings of whole days, today first: half a day would look like a quiet one. */
function beginsOf(now: number, days: number): readonly number[] {
  return Array.from({ length: days }, (_, back) => {
    const date = new Date(now);
    date.setHours(0, 0, 0, 0);
    date.setDate(date.getDate() - back);
    return date.getTime();
  });
}
