import { isoTime } from '../../../../src/core/memory/times.ts';
import { timeOfReceiptId } from '../../core/receipt-id.ts';
import type { ReceiptRow, UsageSum } from '../../ports/receipt-store.ts';

/** The columns of the sums of receipts, for both engines. */

const COUNTS = [
  'requests',
  'failed',
  'original_input',
  'forwarded_input',
  'recalled',
  'elided',
  'input',
  'cache_read',
  'output',
  'spent',
] as const;

/** The sums of some rows. */
export type CountsRow = Readonly<Record<(typeof COUNTS)[number], number>>;

export const COUNT_COLUMNS = COUNTS.join(', ');

/** Adds the counts of a new row to the existing row. */
export const COUNT_ADDITIONS = COUNTS.map(
  (name) => `${name} = usage_days.${name} + excluded.${name}`,
).join(', ');

/** The sum of each count, named like the count. `sumOf` writes the sum of one column. */
export function countSums(sumOf: (name: string) => string): string {
  return COUNTS.map((name) => `${sumOf(name)} AS ${name}`).join(', ');
}

/** The receipts with the highest number of each node and tenant. */
export function newestOf(receipts: readonly ReceiptRow[]): readonly ReceiptRow[] {
  const newest = new Map<string, ReceiptRow>();
  for (const row of receipts) {
    const key = `${row.tenant} ${row.node}`;
    if (row.seq >= (newest.get(key)?.seq ?? 0)) newest.set(key, row);
  }
  return [...newest.values()];
}

/** The counts that some receipts add to the sums of a day. */
export interface UsageRow {
  /** Tenant, day, key, provider and model. */
  readonly names: readonly string[];
  /** In the order of `COUNT_COLUMNS`. */
  readonly counts: readonly number[];
}

/** One row for all receipts that are counted together. */
export function usageOf(receipts: readonly ReceiptRow[]): readonly UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of receipts) {
    const names = usageKeyOf(row);
    const known = sums.get(names.join('\n'))?.counts;
    const counts = countsIn(row).map((count, at) => count + (known?.[at] ?? 0));
    sums.set(names.join('\n'), { names, counts });
  }
  return [...sums.values()];
}

/** The day is the one on which the request came. */
function usageKeyOf({
  tenant,
  receiptId,
  keyId,
  providerId,
  model,
}: ReceiptRow): readonly string[] {
  const day = isoTime(timeOfReceiptId(receiptId) ?? 0).slice(0, 'YYYY-MM-DD'.length);
  // A model that no provider was asked for is only a text of the caller.
  return [tenant, day, keyId, providerId, providerId === '' ? '' : model];
}

function countsIn({ counts }: ReceiptRow): readonly number[] {
  return [
    1,
    counts.failed,
    counts.originalInputTokens,
    counts.forwardedInputTokens,
    counts.recalledTokens,
    counts.elidedTokens,
    counts.inputTokens,
    counts.cacheReadTokens,
    counts.outputTokens,
    counts.spentTokens,
  ];
}

export function countsOf(row: CountsRow): Omit<UsageSum, 'values'> {
  return {
    requests: row.requests,
    failed: row.failed,
    originalInputTokens: row.original_input,
    forwardedInputTokens: row.forwarded_input,
    recalledTokens: row.recalled,
    elidedTokens: row.elided,
    inputTokens: row.input,
    cacheReadTokens: row.cache_read,
    outputTokens: row.output,
    spentTokens: row.spent,
  };
}
