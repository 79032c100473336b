/** Says when dollars may be shown. No code of Node: the page uses it too. */

/** Dollars of a smaller share of the tokens may point the other way than the price of all of them. */
const PRICED_SHARE_MIN = 0.9;

/** Whether the models of enough tokens have a list price, so that dollars may be shown beside the tokens. */
export function isPriced(pricedTokens: number, allTokens: number): boolean {
  return allTokens > 0 && pricedTokens >= PRICED_SHARE_MIN * allTokens;
}
