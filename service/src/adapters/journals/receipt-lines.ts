import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { RECEIPT_ID } from '../../core/receipt-id.ts';
import type { ReceiptClosing, ReceiptOpening } from '../../core/receipts.ts';
import { isTenantId } from '../../core/tenants.ts';

/** The lines of a journal of receipts: a receipt is opened by one and closed by another, or both are one. */

export type ReceiptLine =
  | {
      readonly opened: ReceiptOpening;
      readonly seq: number;
      readonly closing?: ReceiptClosing | undefined;
    }
  | { readonly closed: string; readonly closing: ReceiptClosing };

/** A receipt as far as the journal tells of it; without `closing` it is open. */
export interface JournalledReceipt {
  readonly opening: ReceiptOpening;
  readonly seq: number;
  readonly closing?: ReceiptClosing | undefined;
}

/** Receipts by id, from the lines of all files of one node, in any order of the files. */
export function readReceiptLines(
  values: readonly unknown[],
): ReadonlyMap<string, JournalledReceipt> {
  const found = new Map<string, JournalledReceipt>();
  const closings = new Map<string, ReceiptClosing>();
  for (const value of values) {
    const line = lineOf(value);
    if (line === undefined) continue;
    if ('closed' in line) {
      closings.set(line.closed, line.closing);
      continue;
    }
    const { opened: opening, seq, closing } = line;
    const { receiptId } = opening;
    if (closing !== undefined) closings.set(receiptId, closing);
    found.set(receiptId, { opening, seq });
  }
  for (const [receiptId, receipt] of found) {
    const closing = closings.get(receiptId);
    if (closing !== undefined) found.set(receiptId, { ...receipt, closing });
  }
  return found;
}

// A checksum guards each line, and only this svc writes them: what makes a line one is looked at.
/* oxlint-disable typescript/no-unsafe-type-assertion */
function lineOf(value: unknown): ReceiptLine | undefined {
  const { opened, seq, closed, closing } = asRecord(value);
  if (typeof closed === 'string') {
    const isWhole = RECEIPT_ID.test(closed) && 'status' in asRecord(closing);
    return isWhole ? (value as ReceiptLine) : undefined;
  }
  const { receiptId, tenant, decided } = asRecord(opened);
  const isWhole =
    RECEIPT_ID.test(String(receiptId)) &&
    isTenantId(String(tenant)) &&
    Number.isSafeInteger(seq) &&
    'memoryMode' in asRecord(decided);
  return isWhole ? (value as ReceiptLine) : undefined;
}
