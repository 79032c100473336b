import { moneyOf } from '../settings/money.ts';
import { isPriced } from '../settings/priced-share.ts';
import type { CacheMiss } from './cache-miss.ts';
import { causeOf } from './cache-words.ts';

/** Ranks the causes of many cache misses. */

/** The cache-miss part of a row of the request log. */
export interface MissedRow {
  readonly model: string;
  readonly isLogin?: true;
  readonly miss?: CacheMiss;
}

export interface Culprit {
  readonly cause: string;
  readonly by: CacheMiss['by'];
  readonly times: number;
  readonly tokens: number;
  /** By list prices, for requests paid by a key; undefined if too few tokens have a price, or a login paid. */
  readonly dollars: number | undefined;
}

/** The dearest first. */
export function rankCulprits(rows: readonly MissedRow[]): readonly Culprit[] {
  const groups = new Map<string, (MissedRow & { readonly miss: CacheMiss })[]>();
  for (const row of rows) {
    const { miss } = row;
    if (miss === undefined) continue;
    const cause = causeOf(miss);
    const group = groups.get(cause) ?? [];
    group.push({ ...row, miss });
    groups.set(cause, group);
  }
  const culprits = [...groups].map(([cause, group]) => ({
    cause,
    by: group[0]?.miss.by ?? 'provider',
    times: group.length,
    tokens: group.reduce((sum, { miss }) => sum + miss.tokens, 0),
    dollars: dollarsOf(group),
  }));
  return culprits.toSorted((one, other) => other.tokens - one.tokens);
}

function dollarsOf(
  group: readonly (MissedRow & { readonly miss: CacheMiss })[],
): number | undefined {
  let [dollars, priced, all] = [0, 0, 0];
  for (const { model, isLogin, miss } of group) {
    if (isLogin === true) continue;
    const money = moneyOf(model, { paid: miss.price, direct: 0 }, { output: 0 });
    all += miss.tokens;
    if (money === undefined) continue;
    priced += miss.tokens;
    dollars += money.paid;
  }
  return isPriced(priced, all) ? dollars : undefined;
}
