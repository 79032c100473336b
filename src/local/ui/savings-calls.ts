import { moneyOf } from '../../core/settings/money.ts';
import type { RequestLog } from '../../ports/request-log.ts';
import type { SavingsAnswer } from '../../ports/ui-api.ts';
import { type ApiCall, numberIn, type UiRoute } from './ui-routes.ts';

/** The sums behind the savings view: one for each day, client, project and model. */

/** The request log keeps 90 days. */
const DAYS_MAX = 90;

export function savingsRoutes(requestLog: RequestLog, today: () => number): readonly UiRoute[] {
  return [['GET savings', (call) => savings(requestLog, today(), call)]];
}

async function savings(
  requestLog: RequestLog,
  now: number,
  { query }: ApiCall,
): Promise<SavingsAnswer> {
  const days = numberIn(query, 'days', { fallback: 14, max: DAYS_MAX });
  // Whole days, today being one of them: half a day would look like a quiet one.
  const first = new Date(now);
  first.setHours(0, 0, 0, 0);
  first.setDate(first.getDate() - Math.max(1, days) + 1);
  const sums = await requestLog.sum({ since: first.getTime() });
  return {
    since: first.getTime(),
    sums: sums.map((sum) => ({
      ...sum,
      // A login is paid by the month.
      money: sum.isLogin === 1 ? null : (moneyOf(sum.model, sum.price, sum.usage) ?? null),
    })),
  };
}
