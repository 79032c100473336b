import { groupBy } from '../bytes/batches.ts';
import { moneyOf } from '../settings/money.ts';
import { moneySum } from '../settings/priced-share.ts';
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
  /** The extra cost by list prices, without requests with a login. Undefined if too few tokens have a known price. */
  readonly dollars: number | undefined;
}

/** Ranks causes, the one with the most tokens first. */
export function rankCulprits(rows: readonly MissedRow[]): readonly Culprit[] {
  const missed = rows.flatMap((row) => {
    return row.miss === undefined ? [] : [{ ...row, miss: row.miss }];
  });
  const groups = groupBy(missed, ({ miss }) => causeOf(miss));
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
  const parts = group
    .filter(({ isLogin }) => isLogin !== true)
    .map(({ model, miss: { price: paid, tokens } }) => {
      return { money: moneyOf(model, { paid, direct: 0 }, { output: 0 }), tokens };
    });
  return moneySum(parts).money?.paid;
}
