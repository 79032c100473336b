import type { ReceiptRow, UsageCounts } from '../core/receipt-rows.ts';
import type { HeadFacts, ReceiptStatus, ReceiptClosing, ReceiptOpening } from '../core/receipts.ts';
import type { Page } from './control-store.ts';

export type { ReceiptRow, UsageCounts } from '../core/receipt-rows.ts';

/**
 * Stores receipts of all tenants, with their heads (defined in service/src/core/receipts.ts) and the usage of each day.
 * A stored receipt never changes.
 */
export interface ReceiptStore {
  /**
   * Stores receipts in one transaction with the usage of their days and the last number of their node and tenant. A
   * receipt that exists already stays unchanged, and counts once.
   */
  storeReceipts(rows: readonly ReceiptRow[]): Promise<void>;
  /**
   * Lists the heads of a node that are not closed, ordered by tenant, at most `limit`. Each states the number of the
   * last receipt that the node has stored for the tenant.
   */
  openHeads(asked: { readonly node: string; readonly limit: number }): Promise<readonly OpenHead[]>;
  /** Stores these closed heads. A head that is closed already does not change. */
  closeHeads(heads: readonly ClosedHead[]): Promise<void>;
}

export interface TenantReceipts {
  /**
   * Returns the receipt as it was stored, with its signature if it has one; undefined if there is none with this id.
   */
  findReceipt(receiptId: string, signal: AbortSignal): Promise<StoredReceipt | undefined>;
  /** Lists receipts in the order of their ids, which begin with the time. A page is never longer than its limit. */
  listReceipts(filter: ReceiptFilter, signal: AbortSignal): Promise<readonly StoredReceipt[]>;
  /** Lists heads in the order of their nodes. */
  listHeads(page: Page): Promise<readonly (OpenHead | ClosedHead)[]>;
  /** Lists sums of usage. Sums are kept longer than their receipts. */
  listUsage(filter: UsageFilter): Promise<readonly UsageSum[]>;
  /** Returns the sum of input and output tokens: the providers' counts, or estimates where there are none. */
  tokensSpent(asked: SpentQuestion, signal: AbortSignal): Promise<number>;
  /** Deletes the oldest receipts before this time, at most `limit`. Returns how many it deleted. */
  dropReceipts(asked: { readonly before: number; readonly limit: number }): Promise<number>;
}

export interface StoredReceipt {
  readonly receiptId: string;
  readonly body: string;
}

export interface ReceiptFilter {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** The page begins after this receipt, in the given order. */
  readonly after?: string | undefined;
  /** The page ends before this receipt, in the given order. */
  readonly before?: string | undefined;
  /** The period in milliseconds since 1970: `from` is included, `to` is not. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
  readonly status?: ReceiptStatus | undefined;
  readonly model?: string | undefined;
  readonly keyId?: string | undefined;
  readonly providerId?: string | undefined;
}

/** The last stored receipt number of a node that may still make receipts for the tenant. */
export interface OpenHead extends HeadFacts {
  readonly body?: undefined;
}

/** The last receipt number of a node that makes no further receipts for the tenant. */
export interface ClosedHead extends HeadFacts {
  /** The head as JSON, signed if the service had a signing key. */
  readonly body: string;
}

export type UsageGroup = (typeof USAGE_GROUPS)[number];

export const USAGE_GROUPS = ['day', 'key', 'provider', 'model'] as const;

export interface UsageFilter {
  /** The first and the last day, such as `2026-11-20`, UTC. Both are included. */
  readonly from: string;
  readonly to: string;
  readonly keyId?: string | undefined;
  /** What the sums are grouped by, at least one. The rows of a page are sorted by these groups. */
  readonly groups: readonly UsageGroup[];
  readonly limit: number;
  /** The values of the groups in the last row that the caller has. */
  readonly after?: readonly string[] | undefined;
}

export interface UsageSum extends UsageCounts {
  /** One value for each group in the filter. */
  readonly values: readonly string[];
  readonly requests: number;
}

export interface SpentQuestion {
  readonly from: string;
  readonly to: string;
  /** The key whose tokens are summed; undefined means all keys of the tenant. */
  readonly keyId?: string | undefined;
}

/**
 * Writes the receipts of requests. An open receipt is in a file before the provider is called, so every forwarded
 * request has a receipt, even if this process is killed. Closed receipts are signed, if the service has a signing key,
 * and stored a moment later.
 */
export interface Receipts {
  /** Opens a receipt, in one line that is written synchronously. If it throws JournalFullError, forward nothing. */
  open(opening: ReceiptOpening): OpenReceipt;
  /** Writes the receipt of a request that never reaches a provider, in one line. Throws JournalFullError. */
  reject(opening: ReceiptOpening, closing: ReceiptClosing): void;
  /** Returns undefined while receipts can be written; otherwise the problem, for the operator. */
  problem(): string | undefined;
  /** Stores the receipts that are closed. Returns false if that is not possible now. */
  flush(): Promise<boolean>;
}

export interface OpenReceipt {
  /** Closes the receipt after the last byte, or when the request failed. Later calls do nothing. Never throws. */
  close(closing: ReceiptClosing): void;
}

/** Thrown if no further receipt can be written: too many are not stored yet, or the disk is full or read-only. */
export class JournalFullError extends Error {
  override readonly name = 'JournalFullError';
}
