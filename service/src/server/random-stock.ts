/** So many ids of ten bytes take one call to the system's source. */
const STOCK_BYTES = 4096;

/**
 * Random bytes for ids, from a stock: a call for each id costs ten times as much. Only for values that
 * are no secret, because the bytes lie in memory before their use.
 */
export function stockedBytes(
  randomBytes: (count: number) => Uint8Array,
): (count: number) => Uint8Array {
  let stock: Uint8Array = new Uint8Array();
  let used = 0;
  return (count) => {
    if (used + count > stock.length) {
      stock = randomBytes(Math.max(count, STOCK_BYTES));
      used = 0;
    }
    used += count;
    return stock.subarray(used - count, used);
  };
}
