import { canonicalJson } from '../../../../src/core/memory-api/canonical.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { type ReceiptRow, receiptRow } from '../../core/receipt-rows.ts';
import { headOf, NODE_LOST, receiptOf, receiptText } from '../../core/receipts.ts';
import type { ClosedHead, ReceiptStore } from '../../ports/receipt-store.ts';
import type { JournalledReceipt } from './receipt-lines.ts';

/** Signs the receipts that a journal holds, and the last numbers of its node, and stores them. */

/**
 * Signs canonical JSON of objects, all with one key, or rejects. It gives the JSON of the signed objects.
 */
export type Sign = (canonical: readonly string[]) => Promise<readonly string[]>;

/** So many signatures take the threads of libuv at once, which also sync the journals: a millisecond. */
const SIGNED_AT_ONCE = 25;

export interface Storing {
  readonly version: string;
  readonly store: ReceiptStore;
  readonly sign: Sign;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export async function storeBatch(
  { version, store, sign }: Storing,
  batch: readonly JournalledReceipt[],
  node: string,
): Promise<void> {
  const rows: ReceiptRow[] = [];
  for (let from = 0; from < batch.length; from += SIGNED_AT_ONCE) {
    const closed = batch.slice(from, from + SIGNED_AT_ONCE).map((one) => {
      const { opening, closing = NODE_LOST, seq } = one;
      return { opening, closing, receipt: receiptOf(opening, closing, { version, node, seq }) };
    });
    const bodies = await sign(closed.map(({ receipt }) => receiptText(receipt)));
    for (const [at, one] of closed.entries()) rows.push(receiptRow(one, bodies[at] ?? ''));
  }
  await store.storeReceipts(rows);
}

export type Head = Omit<ClosedHead, 'body'>;

/** False when they could not be stored. */
export async function storeHeads(storing: Storing, heads: readonly Head[]): Promise<boolean> {
  return closeHeads(storing, heads).then(
    () => true,
    () => false,
  );
}

export async function closeHeads(
  { store, sign, now }: Storing,
  heads: readonly Head[],
): Promise<void> {
  const at = isoTime(now());
  const texts = heads.map((head) => canonicalJson(headOf(head, { at, isClosed: true })) ?? '');
  const bodies = await sign(texts);
  await store.closeHeads(
    heads.map(({ tenant, node, lastSeq }, place) => {
      return { tenant, node, lastSeq, body: bodies[place] ?? '' };
    }),
  );
}
