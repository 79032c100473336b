import { isoTime } from '../../core/memory/times.ts';
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

/** Adds the counts of a new row to those of the row that stands. */
export const COUNT_ADDITIONS = COUNTS.map(
  (name) => `${name} = usage_days.${name} + excluded.${name}`,
).join(', ');

/** The sum of each count, named like the count. `sumOf` writes the sum of one column. */
export function countSums(sumOf: (name: string) => string): string {
  return COUNTS.map((name) => `${sumOf(name)} AS ${name}`).join(', ');
}

/** Tenant, day, key, provider and model under which a receipt is counted. `at`: when its request came. */
export function usageKeyOf(
  { tenant, keyId, providerId, model }: ReceiptRow,
  at: number,
): readonly string[] {
  const day = isoTime(at).slice(0, 'YYYY-MM-DD'.length);
  // A model that no provider was asked for is only a text of the caller.
  return [tenant, day, keyId, providerId, providerId === '' ? '' : model];
}

/** The counts of one receipt, in the order of `COUNT_COLUMNS`. */
export function countsIn({ counts }: ReceiptRow): readonly number[] {
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
