import type { Usage } from '../../../src/core/dialects/dialect-answer.ts';
import type { Camel } from './account-settings.ts';
import type { Receipt, ReceiptClosing, ReceiptOpening, ReceiptStatus } from './receipts.ts';

/**
 * Makes what is stored of a receipt: its JSON, the columns that lists filter by, its number for the node's head, and
 * the counts for the sums of each day.
 */

export interface ReceiptRow {
  readonly tenant: string;
  readonly receiptId: string;
  readonly node: string;
  readonly seq: number;
  readonly keyId: string;
  /** The chosen provider; empty if none was chosen. */
  readonly providerId: string;
  /** `model_requested` of the receipt; empty if that is null. */
  readonly model: string;
  readonly status: ReceiptStatus;
  readonly body: string;
  readonly counts: UsageCounts;
}

/** The names of the sums of usage, in the API and in the table `usage_days`. */
export const USAGE_COUNTS = [
  'requests',
  'failed',
  'original_input_tokens',
  'forwarded_input_tokens',
  'recalled_tokens',
  'elided_tokens',
  // The provider's own counts. Input includes tokens read from and written to its cache.
  'input_tokens',
  'cache_read_tokens',
  'output_tokens',
  // Tokens that count against budgets: the provider's count, or the estimate if there is none.
  'spent_tokens',
] as const;

/** What one receipt adds to the sums, in addition to one request. */
export type UsageCounts = {
  readonly [Name in Exclude<(typeof USAGE_COUNTS)[number], 'requests'> as Camel<Name>]: number;
};

export interface ClosedReceipt {
  readonly opening: ReceiptOpening;
  readonly closing: ReceiptClosing;
  readonly receipt: Receipt;
}

/** Makes the row of a receipt. `body` is the receipt as JSON, signed if the service has a signing key. */
export function receiptRow({ opening, closing, receipt }: ClosedReceipt, body: string): ReceiptRow {
  const model = receipt['model_requested'];
  return {
    tenant: opening.tenant,
    receiptId: opening.receiptId,
    node: receipt.issuer.node,
    seq: receipt.issuer.seq,
    keyId: opening.keyId,
    providerId: opening.provider?.id ?? '',
    model: typeof model === 'string' ? model : '',
    status: closing.status,
    body,
    counts: countsOf(opening, closing),
  };
}

function countsOf(opening: ReceiptOpening, closing: ReceiptClosing): UsageCounts {
  const decided = closing.decided ?? opening.decided;
  const usage = closing.usage === undefined ? undefined : believedUsage(closing.usage);
  const { input, cacheRead, cacheWrite, output } = usage ?? NO_USAGE;
  const reached = opening.provider !== null && closing.status !== 'rejected';
  const inputTokens = input + cacheRead + cacheWrite;
  const isWell = closing.status === 'completed' && (closing.httpStatus ?? 500) < 400;
  return {
    failed: isWell ? 0 : 1,
    originalInputTokens: decided.original_input_tokens,
    forwardedInputTokens: decided.forwarded_input_tokens,
    recalledTokens: decided.recalled_tokens,
    elidedTokens: decided.elided_tokens,
    inputTokens,
    cacheReadTokens: cacheRead,
    outputTokens: output,
    spentTokens:
      usage === undefined
        ? estimatedTokens(closing, reached ? decided.forwarded_input_tokens : 0)
        : inputTokens + (output || (closing.uncountedTokens ?? 0)),
  };
}

const NO_USAGE = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0 } as const;

/**
 * Bound on each of the provider's four token counts, in the daily sums and in the counts of the limiter. A larger count
 * could overflow the sums, and would refuse a tenant's requests for years.
 */
const TOKENS_MAX = 1_000_000_000;

export function believedUsage({ input, cacheRead, cacheWrite, output }: Usage): Usage {
  return {
    input: Math.min(input, TOKENS_MAX),
    cacheRead: Math.min(cacheRead, TOKENS_MAX),
    cacheWrite: Math.min(cacheWrite, TOKENS_MAX),
    output: Math.min(output, TOKENS_MAX),
  };
}

/** Returns the estimated tokens of a request whose answer has no counts; 0 if the client got an error status. */
function estimatedTokens(
  { httpStatus, uncountedTokens = 0 }: ReceiptClosing,
  estimate: number,
): number {
  return httpStatus !== null && httpStatus >= 400 ? 0 : estimate + uncountedTokens;
}
