import type { ReceiptClosing, ReceiptOpening } from '../../core/receipts.ts';
import { JournalFullError } from '../../ports/receipts.ts';
import { Buckets } from '../buckets.ts';
import type { ServingParts } from '../parts.ts';

/**
 * Receipts of requests that reach no provider: refusals, and lists of models. A client in a loop sends
 * hundreds of these a second, and each receipt is kept for months. So above a rate for each tenant they
 * leave a row in the log and a count in the metrics, but no receipt.
 */

/** A person who tries things stays below it. At most 87,000 a day: 200 MB. */
const RATE = { perMinute: 60, burst: 120 };

export class UnforwardedReceipts {
  readonly #parts: Pick<ServingParts, 'receipts' | 'clock'>;
  readonly #buckets = new Buckets(RATE);

  constructor(parts: Pick<ServingParts, 'receipts' | 'clock'>) {
    this.#parts = parts;
  }

  /** For a list that was answered. False: there is no receipt. Throws JournalFullError. */
  served(opening: ReceiptOpening, closing: ReceiptClosing): boolean {
    const { receipts, clock } = this.#parts;
    if (this.#buckets.take(opening.tenant, clock.monotonic()) > 0) return false;
    receipts.reject(opening, closing);
    return true;
  }

  /** False: there is no receipt. A request is refused also where its receipt cannot be written. */
  refused(opening: ReceiptOpening, closing: ReceiptClosing): boolean {
    try {
      return this.served(opening, closing);
    } catch (error) {
      if (!(error instanceof JournalFullError)) throw error;
      return false;
    }
  }
}
