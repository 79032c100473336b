import { dayName } from '../../core/meter/figures.ts';
import { groupBy } from '../../core/bytes/batches.ts';
import { moneySum } from '../../core/settings/priced-share.ts';
import type { SavingsSum } from '../../ports/ui-api.ts';

export type Total = ReturnType<typeof totalOf>;

export function totalOf(name: string, sums: readonly SavingsSum[]) {
  let [requests, paid, direct] = [0, 0, 0];
  for (const sum of sums) {
    requests += sum.requests;
    paid += sum.price.paid;
    direct += sum.price.direct;
  }
  return { name, requests, paid, direct };
}

/** Adds up the sums of each name. The name with the highest direct price is first. */
export function groupedBy(
  sums: readonly SavingsSum[],
  nameOf: (sum: SavingsSum) => string,
): readonly Total[] {
  return [...groupBy(sums, nameOf)]
    .map(([name, members]) => totalOf(name, members))
    .toSorted((one, other) => other.direct - one.direct);
}

/** Adds up the sums of each day, oldest first. A day without a request has zeros. */
export function daysOf(
  sums: readonly SavingsSum[],
  { since, days }: { readonly since: number; readonly days: number },
): readonly Total[] {
  const byDay = new Map(groupedBy(sums, ({ day }) => day).map((total) => [total.name, total]));
  return Array.from({ length: days }, (_, at) => {
    const date = new Date(since);
    date.setDate(date.getDate() + at);
    const name = dayName(date.getTime());
    return byDay.get(name) ?? { name, requests: 0, paid: 0, direct: 0 };
  });
}

/** Returns the difference between paid and direct price, as a share of the direct price; negative if svc cost less. */
export function shareOf({ paid, direct }: Pick<Total, 'paid' | 'direct'>): number | undefined {
  return direct === 0 ? undefined : (paid - direct) / direct;
}

/**
 * Returns the paid and the direct price in dollars; undefined if more than a tenth of the tokens are of models without
 * a list price.
 */
export function moneyOf(sums: readonly SavingsSum[]): Pick<Total, 'paid' | 'direct'> | undefined {
  return moneySum(sums.map(({ money, price }) => ({ money, tokens: price.direct }))).money;
}

export function added(sums: readonly SavingsSum[], valueOf: (sum: SavingsSum) => number): number {
  return sums.reduce((total, sum) => total + valueOf(sum), 0);
}
