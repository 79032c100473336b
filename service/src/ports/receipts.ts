import type { ReceiptClosing, ReceiptOpening } from '../core/receipts.ts';

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
