import type { CaptureState, Memory, MemoryRecord } from '../ports/memory.ts';
import { MemoryError } from '../core/errors.ts';

/**
 * Delivers records that wait in an outbox to a memory, batch after batch, until it has them all. A record may be
 * delivered twice and is stored once: the memory identifies it by its digest.
 */

/** A call that the memory can answer in a few milliseconds, and a retry that costs little. */
const BATCH_RECORDS_MAX = 64;
const BATCH_CHARS_MAX = 1024 * 1024;
/**
 * Captures within this time are one commit: a prompt and its answer. A capture must be recallable
 * after 50 ms. A commit takes 10 of them on a slow disk, and a timer of a busy process is late.
 */
const GATHER_MS = 10;
/** One call; a memory that needs longer is tried again. */
const CAPTURE_MS = 30_000;
const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 30_000;
/** A full disk must not fill what is left with warnings. */
const WARNING_MS = 60_000;

/** The rows of an outbox, one for each record, the oldest first. */
export interface WaitingRows<Row> {
  /** At most so many, of about so many characters, and at least one if one waits. Undefined: they cannot be read now. */
  next(most: number, charsMax: number): Promise<readonly Row[] | undefined>;
  /** Undefined where the row holds none. */
  recordOf(row: Row): MemoryRecord | undefined;
  /** Called with rows that the memory has, or refuses for good. False: they are delivered again. */
  remove(rows: readonly Row[]): Promise<boolean>;
  /** Called when rows have to wait for another attempt. */
  waits?(): void;
}

export interface DeliveryOptions<Row> {
  readonly rows: WaitingRows<Row>;
  readonly target: Pick<Memory, 'capture'>;
  /** The longest pause between two tries, in milliseconds. */
  readonly retryMsMax?: number | undefined;
  report(line: string): void;
}

export class Delivery<Row> {
  readonly #options: DeliveryOptions<Row>;
  #running: Promise<void> | undefined;
  /** A record may have come since the rows were read. */
  #isAsked = false;
  #isClosed = false;
  #batchMax = BATCH_RECORDS_MAX;
  #warnedAt = -Infinity;
  #wake: () => void = () => undefined;

  constructor(options: DeliveryOptions<Row>) {
    this.#options = options;
  }

  /** Begins soon, after the client's last byte is out. Resolves when nothing waits any more, or it was closed. */
  begin(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isAsked = true;
    this.#running ??= this.#run();
    return this.#running;
  }

  /** The same, without the pause that it may be in. */
  hurry(): Promise<void> {
    const running = this.begin();
    this.#wake();
    return running;
  }

  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  warn(line: string): void {
    const now = performance.now();
    if (now - this.#warnedAt < WARNING_MS) return;
    this.#warnedAt = now;
    this.#options.report(line);
  }

  // Never rejects: every failure ends in another attempt or in a record that is given up aloud.
  async #run(): Promise<void> {
    const { rows, retryMsMax = RETRY_MS_MAX } = this.#options;
    await this.#pause(GATHER_MS);
    let retryMs = RETRY_MS_MIN;
    while (!this.#isClosed) {
      this.#isAsked = false;
      const batch = await rows.next(this.#batchMax, BATCH_CHARS_MAX);
      if (batch?.length === 0) {
        if (this.#isAsked) continue;
        break;
      }
      const isDelivered = batch !== undefined && (await this.#deliver(batch));
      if (this.#isClosed) break;
      if (isDelivered && (await rows.remove(batch))) {
        retryMs = RETRY_MS_MIN;
        continue;
      }
      rows.waits?.();
      await this.#pause(retryMs);
      retryMs = Math.min(retryMs * 2, retryMsMax);
    }
    // At once: a record that is kept from here on begins a new run.
    this.#running = undefined;
  }

  /** False: to be tried again. */
  async #deliver(batch: readonly Row[]): Promise<boolean> {
    const records = batch.flatMap((row) => this.#options.rows.recordOf(row) ?? []);
    try {
      const states = await this.#capture(records);
      this.#batchMax = BATCH_RECORDS_MAX;
      if (states.includes('rejected')) this.warn('The memory refused a record.');
      return true;
    } catch (error) {
      if (!(error instanceof MemoryError) || error.reason !== 'invalid') return false;
      // One record of the batch is at fault: alone it can be named and given up.
      if (batch.length > 1) this.#batchMax = 1;
      if (batch.length > 1) return false;
      this.warn('The memory refused a record.');
      return true;
    }
  }

  async #capture(records: readonly MemoryRecord[]): Promise<readonly CaptureState[]> {
    if (records.length === 0) return [];
    return this.#options.target.capture(records, AbortSignal.timeout(CAPTURE_MS));
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      timer.unref();
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
