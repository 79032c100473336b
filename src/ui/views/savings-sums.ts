import { isPriced } from '../../core/settings/priced-share.ts';
import type { SavingsSum } from '../../ports/ui-api.ts';
import { dayKey } from '../format.ts';

/** Sums of the savings view. Pure. */

export interface Total {
  readonly name: string;
  readonly requests: number;
  readonly paid: number;
  readonly direct: number;
}

export function totalOf(name: string, sums: readonly SavingsSum[]): Total {
  let [requests, paid, direct] = [0, 0, 0];
  for (const sum of sums) {
    requests += sum.requests;
    paid += sum.price.paid;
    direct += sum.price.direct;
  }
  return { name, requests, paid, direct };
}

/** Dearest first. */
export function groupedBy(
  sums: readonly SavingsSum[],
  nameOf: (sum: SavingsSum) => string,
): readonly Total[] {
  const groups = new Map<string, SavingsSum[]>();
  for (const sum of sums) {
    const group = groups.get(nameOf(sum)) ?? [];
    group.push(sum);
    groups.set(nameOf(sum), group);
  }
  return [...groups]
    .map(([name, members]) => totalOf(name, members))
    .toSorted((one, other) => other.direct - one.direct);
}

/** Returns every day of the scope, oldest first, even days without a request. */
export function daysOf(
  sums: readonly SavingsSum[],
  { since, days }: { readonly since: number; readonly days: number },
): readonly Total[] {
  const byDay = new Map(groupedBy(sums, ({ day }) => day).map((total) => [total.name, total]));
  return Array.from({ length: days }, (_, at) => {
    const date = new Date(since);
    date.setDate(date.getDate() + at);
    const name = dayKey(date.getTime());
    return byDay.get(name) ?? { name, requests: 0, paid: 0, direct: 0 };
  });
}

/** Negative is cheaper than direct. */
export function shareOf({ paid, direct }: Pick<Total, 'paid' | 'direct'>): number | undefined {
  return direct === 0 ? undefined : (paid - direct) / direct;
}

/** Returns dollars; undefined if they would leave out more than a tenth of the headline's tokens. */
export function moneyOf(sums: readonly SavingsSum[]): Pick<Total, 'paid' | 'direct'> | undefined {
  let [paid, direct, all, priced] = [0, 0, 0, 0];
  for (const { money, price } of sums) {
    paid += money?.paid ?? 0;
    direct += money?.direct ?? 0;
    all += price.direct;
    if (money !== null) priced += price.direct;
  }
  return isPriced(priced, all) ? { paid, direct } : undefined;
}

export function added(sums: readonly SavingsSum[], valueOf: (sum: SavingsSum) => number): number {
  return sums.reduce((total, sum) => total + valueOf(sum), 0);
}
