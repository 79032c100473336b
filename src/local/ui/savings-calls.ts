import { moneyOf } from '../../core/settings/money.ts';
import type { RequestLog, RequestSum } from '../../ports/request-log.ts';
import type { SavingsAnswer } from '../../ports/ui-api.ts';
import { type ApiCall, numberIn, type UiRoute } from './ui-routes.ts';

/** The sums behind the savings view: one for each day, client, project and model. */

/** The request log keeps 90 days. */
const DAYS_MAX = 90;
/** As many as the page has scopes. */
const KEPT_MAX = 5;
/** The log drops old rows by and by. */
const KEPT_MS = 600_000;

export function savingsRoutes(requestLog: RequestLog, today: () => number): readonly UiRoute[] {
  const sums = new KeptSums(requestLog);
  return [['GET savings', (call) => savings(sums, today(), call)]];
}

interface Kept {
  readonly at: number;
  readonly newest: string;
  readonly sums: readonly RequestSum[];
}

/** A sum reads every row of its days: it is kept until the log has a newer one. */
class KeptSums {
  readonly #requestLog: RequestLog;
  readonly #kept = new Map<number, Kept>();

  constructor(requestLog: RequestLog) {
    this.#requestLog = requestLog;
  }

  async since(since: number, now: number): Promise<readonly RequestSum[]> {
    const [row] = await this.#requestLog.list({ limit: 1 });
    const newest = row?.id ?? '';
    const kept = this.#kept.get(since);
    if (kept?.newest === newest && Math.abs(now - kept.at) < KEPT_MS) return kept.sums;
    const sums = await this.#requestLog.sum({ since });
    this.#kept.delete(since);
    this.#kept.set(since, { at: now, newest, sums });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest);
    return sums;
  }
}

async function savings(kept: KeptSums, now: number, { query }: ApiCall): Promise<SavingsAnswer> {
  const days = numberIn(query, 'days', { fallback: 14, max: DAYS_MAX });
  // Whole days, today being one of them: half a day would look like a quiet one.
  const first = new Date(now);
  first.setHours(0, 0, 0, 0);
  first.setDate(first.getDate() - Math.max(1, days) + 1);
  const sums = await kept.since(first.getTime(), now);
  return {
    since: first.getTime(),
    sums: sums.map((sum) => ({
      ...sum,
      // A login is paid by the month.
      money: sum.isLogin === 1 ? null : (moneyOf(sum.model, sum.price, sum.usage) ?? null),
    })),
  };
}
