/** Says when dollar amounts may be shown. It uses no Node code, because the page uses it too. */

/** Least share of tokens with a price: below it the dollars may differ in sign from the price of all tokens. */
const PRICED_SHARE_MIN = 0.9;

/** Says whether enough tokens have a list price to show dollars beside them. */
export function isPriced(pricedTokens: number, allTokens: number): boolean {
  return allTokens > 0 && pricedTokens >= PRICED_SHARE_MIN * allTokens;
}
