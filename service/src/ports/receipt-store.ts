import type { ReceiptRow, UsageCounts } from '../core/receipt-rows.ts';
import type { ReceiptStatus, ReceiptClosing, ReceiptOpening } from '../core/receipts.ts';
import type { Page } from './control-store.ts';

export type { ReceiptRow, UsageCounts } from '../core/receipt-rows.ts';

/** Receipts as rows, and what they come to by day. A receipt's text is never changed once it is stored. */

/** The part of the store that no tenant binds: receipts of all tenants arrive together. */
export interface ReceiptStore {
  /**
   * In one transaction: the receipts, the usage of their days, and the last number of their node and
   * tenant. A receipt that is there already stays as it is, and counts once.
   */
  storeReceipts(rows: readonly ReceiptRow[]): Promise<void>;
  /** The heads of a node that are not closed. */
  openHeads(asked: { readonly node: string; readonly limit: number }): Promise<readonly OpenHead[]>;
  /** Replaces the head of this node and tenant, unless that is closed. */
  closeHeads(heads: readonly ClosedHead[]): Promise<void>;
}

/** One tenant's. */
export interface TenantReceipts {
  /** The text as it was stored, with its signature. */
  findReceipt(receiptId: string, signal: AbortSignal): Promise<StoredReceipt | undefined>;
  /** By id, which begins with the time. A page is never longer than its limit. */
  listReceipts(filter: ReceiptFilter, signal: AbortSignal): Promise<readonly StoredReceipt[]>;
  /** By node. */
  listHeads(page: Page): Promise<readonly (OpenHead | ClosedHead)[]>;
  /** Sums outlive their receipts. */
  listUsage(filter: UsageFilter): Promise<readonly UsageSum[]>;
  /** Input and output tokens, as the providers counted them, else as they were estimated. */
  tokensSpent(asked: SpentQuestion, signal: AbortSignal): Promise<number>;
  /** Deletes the oldest up to and without this time: at most `limit`. The number of those deleted. */
  dropReceipts(asked: { readonly before: number; readonly limit: number }): Promise<number>;
}

export interface StoredReceipt {
  readonly receiptId: string;
  readonly body: string;
}

export interface ReceiptFilter {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** Behind this one, in that order. */
  readonly after?: string;
  /** The page that ends in front of this one, in that order. */
  readonly before?: string;
  /** Milliseconds since 1970: from the first, before the second. */
  readonly from?: number;
  readonly to?: number;
  readonly status?: ReceiptStatus;
  readonly model?: string;
  readonly keyId?: string;
  readonly providerId?: string;
}

/** The last number of a node and tenant, as far as it is stored. */
export interface OpenHead {
  readonly tenant: string;
  readonly node: string;
  readonly lastSeq: number;
  readonly body?: undefined;
}

export interface ClosedHead {
  readonly tenant: string;
  readonly node: string;
  readonly lastSeq: number;
  /** The signed head as JSON. */
  readonly body: string;
}

export type UsageGroup = (typeof USAGE_GROUPS)[number];

export const USAGE_GROUPS = ['day', 'key', 'provider', 'model'] as const;

export interface UsageFilter {
  /** Days as `2026-11-20`, UTC: both are within. */
  readonly from: string;
  readonly to: string;
  readonly keyId?: string;
  /** At least one; a page is in their order. */
  readonly groups: readonly UsageGroup[];
  readonly limit: number;
  /** The values of the groups in the last row that the caller has. */
  readonly after?: readonly string[];
}

export interface UsageSum extends UsageCounts {
  /** One value for each group that was asked for. */
  readonly values: readonly string[];
  readonly requests: number;
}

export interface SpentQuestion {
  readonly from: string;
  readonly to: string;
  /** Undefined: of all keys of the tenant. */
  readonly keyId?: string;
}

/**
 * Where the receipts of requests go. A receipt is on disk as an open one before the provider is
 * called, so a request that a provider saw always has one, also when this process is killed. Closed
 * ones are signed and stored a moment later.
 */
export interface Receipts {
  /** Writes one line, now. Throws JournalFullError; the request must then not be forwarded. */
  open(opening: ReceiptOpening): OpenReceipt;
  /** For a request that never reaches a provider: opened and closed in one line. Throws JournalFullError. */
  reject(opening: ReceiptOpening, closing: ReceiptClosing): void;
  /** Undefined while a receipt can be opened; else what is wrong, for the operator. */
  problem(): string | undefined;
}

export interface OpenReceipt {
  /** After the last byte, or when the request failed. Once: later calls do nothing. Never throws. */
  close(closing: ReceiptClosing): void;
}

/** No further receipt can be written: too many wait, or the disk is full or read-only. */
export class JournalFullError extends Error {
  override readonly name = 'JournalFullError';
}
