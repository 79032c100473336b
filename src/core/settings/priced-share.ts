import type { Money } from './money.ts';

/** Adds up dollars and says when they may be shown. It uses no Node code, because the page uses it too. */

/**
 * Least share of the tokens that must have a list price. With less, dollars may show a saving where there is a loss.
 */
const PRICED_SHARE_MIN = 0.9;

interface Priced {
  /** The price in US dollars; null or undefined if the tokens have no list price. */
  readonly money: Money | null | undefined;
  readonly tokens: number;
}

interface MoneySum {
  /** The sum in US dollars. Undefined if less than PRICED_SHARE_MIN of the tokens have a list price. */
  readonly money: Money | undefined;
  readonly tokens: { readonly all: number; readonly priced: number };
}

/** Adds up the dollars of the parts, and their tokens: all, and those with a price. */
export function moneySum(parts: readonly Priced[]): MoneySum {
  let [paid, direct, all, priced] = [0, 0, 0, 0];
  for (const { money, tokens } of parts) {
    all += tokens;
    if (money === null || money === undefined) continue;
    priced += tokens;
    paid += money.paid;
    direct += money.direct;
  }
  const isPriced = all > 0 && priced >= PRICED_SHARE_MIN * all;
  return { money: isPriced ? { paid, direct } : undefined, tokens: { all, priced } };
}
