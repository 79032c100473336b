import { Recent } from '../../core/bytes/recent.ts';
import { captureKeyOf, readRecord } from '../../core/memory/record.ts';
import { MemoryError } from '../../core/errors.ts';
import type { Memory, MemoryRecord } from '../../ports/memory.ts';
import type { Outbox } from '../../ports/outbox.ts';
import { within } from '../within.ts';
import type { Statements } from '../store/driver.ts';
import type { StateFile } from './state-file.ts';
import { seldom, type StateWriter } from './state-writer.ts';

/**
 * The outbox: captures that a memory has not stored yet. Each capture is a row of `state.db`, or waits in RAM while the
 * file cannot be written. A row stays until the memory has stored or refused the capture, or the user has forgotten the
 * text, so neither a kill of the process nor an unreachable memory loses it. Every process on the folder delivers the
 * rows of all processes, in batches. A capture may be delivered twice, but the memory knows the digest and stores it
 * once.
 */

/** The name of the outbox for the memory on this machine. Each memory service has an outbox with another name. */
export const STORE_TARGET = 'store';
/** Bound on the bytes of waiting captures: some 30,000 exchanges, weeks of work. keep() refuses a capture beyond it. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** How long a write waits for a lock, which other connections hold for a few milliseconds. */
const WRITE_MS = 1000;
/** Bound on the capture keys in `#kept`: those of about a day of work. Each takes about 100 bytes of RAM. */
const KEPT_MAX = 8192;
/** Bounds of a batch, which the memory gets in one call. */
const BATCH_RECORDS_MAX = 64;
const BATCH_CHARS_MAX = 1024 * 1024;
/**
 * How long a delivery waits for further captures, so that a prompt and its answer need one commit. A recall must find a
 * capture after 50 ms. On a slow disk the commit takes 10 ms of these, and in a busy process the timer may be late.
 */
const GATHER_MS = 10;
/** Deadline of a delivery. After that, it is repeated. */
const CAPTURE_MS = 30_000;
/** How long a shutdown waits for deliveries. What is not delivered by then stays in the file for the next start. */
export const CLOSE_FLUSH_MS = 2000;
const RETRY_MS_MIN = 250;
const RETRY_MS_MAX = 30_000;

export interface OutboxRow {
  readonly n: number;
  readonly record: string;
}

export interface StateOutboxOptions {
  readonly file: StateFile;
  readonly writer: StateWriter;
  /** The name of this outbox. Each memory has its own, because captures for one must not go to another. */
  readonly name: string;
  readonly target: Pick<Memory, 'capture'>;
  /** The longest pause between two attempts, in milliseconds. */
  readonly retryMsMax?: number | undefined;
  report(line: string): void;
}

export class StateOutbox implements Outbox {
  readonly #options: StateOutboxOptions;
  /** Keys of captures that this process has put into the outbox. Each request of an exchange offers the same ones. */
  readonly #kept = new Recent<string, true>(KEPT_MAX);
  /** The keys in `#kept` whose captures are not written to the file yet. */
  readonly #unwritten = new Set<string>();
  /** Bytes of the captures that are not delivered yet. Before #countBytes() these are only captures of this process. */
  #waitingBytes = 0;
  #areBytesCounted = false;
  #isClosed = false;
  #delivering: Promise<void> | undefined;
  /** True if captures may have been added since #deliverAll() last read the rows. */
  #isAsked = false;
  #batchMax = BATCH_RECORDS_MAX;
  readonly #warn: (line: string) => void;
  #wake: () => void = () => undefined;

  /** Starts to deliver the captures that earlier processes have left. */
  constructor(options: StateOutboxOptions) {
    this.#options = options;
    this.#warn = seldom((line) => options.report(line));
    setImmediate(() => void this.#begin());
  }

  get waiting(): number {
    return this.#count() ?? 0;
  }

  keep(records: readonly MemoryRecord[]): boolean {
    if (this.#isClosed) return false;
    const fresh = records.filter((record) => !this.#kept.has(captureKeyOf(record)));
    if (fresh.length === 0) return !this.#isUnwritten(records);
    const lines = fresh.map((record) => JSON.stringify(record));
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    if (this.#waitingBytes + bytes > WAITING_BYTES_MAX) {
      this.#warn('svc could not store a memory, because the outbox is full.');
      return false;
    }
    const values = JSON.stringify(lines);
    const keys = fresh.map(captureKeyOf);
    const { writer, name } = this.#options;
    const insert = (rows: Statements): void => {
      const sql = `INSERT INTO outbox (target, record, at)
        SELECT ?, value, ? FROM json_each(?) ORDER BY key`;
      rows.run(sql, name, Date.now(), values);
    };
    const written = writer.put(insert, () => keys.forEach((key) => this.#unwritten.delete(key)));
    if (written === 'refused') return false;
    for (const key of keys) {
      this.#kept.set(key, true);
      if (written !== 'done') this.#unwritten.add(key);
    }
    this.#waitingBytes += bytes;
    void this.#begin();
    return written !== 'failed';
  }

  /** Says whether one of these captures is only in RAM, because the disk fails. Lets the writer try again first. */
  #isUnwritten(records: readonly MemoryRecord[]): boolean {
    const { writer } = this.#options;
    if (this.#unwritten.size > 0 && writer.isFailing) writer.retry();
    return writer.isFailing && records.some((record) => this.#unwritten.has(captureKeyOf(record)));
  }

  /**
   * Notes the owner of the memory, and takes over the captures that wait in other outboxes of this owner. Captures wait
   * there if the user has replaced a revoked key, because nothing is delivered with that key any more.
   */
  belongsTo(owner: string): void {
    const { writer, name } = this.#options;
    const take = (rows: Statements): void =>
      rows.transaction(() => {
        rows.run('INSERT OR REPLACE INTO outbox_owners (target, owner) VALUES (?, ?)', name, owner);
        const others = 'SELECT target FROM outbox_owners WHERE owner = ?';
        rows.run(`UPDATE outbox SET target = ? WHERE target IN (${others})`, name, owner);
      });
    writer.put(take, () => {
      this.#areBytesCounted = false;
      void this.#begin();
    });
  }

  async flush(withinMs: number): Promise<void> {
    const end = performance.now() + withinMs;
    if (!(await this.#options.writer.caughtUp(withinMs))) return;
    while (!this.#isClosed && this.#count() !== 0) {
      const msLeft = end - performance.now();
      const delivered = this.#begin().then(() => true);
      this.#wake();
      const isDone = within(msLeft, delivered);
      // oxlint-disable-next-line no-await-in-loop -- Records that are kept meanwhile are delivered next.
      if (msLeft <= 0 || (await isDone) !== true) return;
    }
  }

  /** Makes keep() accept all captures again, because the memory was replaced and may lack them. */
  forgetSettled(): void {
    this.#kept.clear();
  }

  /** Stops delivering. Waiting captures stay in the file for the next process. */
  close(): void {
    this.#isClosed = true;
    this.#wake();
  }

  /** Starts a delivery soon, unless one is running. Resolves when no capture waits, or after closing. */
  #begin(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#isAsked = true;
    this.#delivering ??= this.#deliverAll();
    return this.#delivering;
  }

  /**
   * Delivers all waiting captures. Never rejects: it tries again after a failure, or drops a capture with a warning.
   */
  async #deliverAll(): Promise<void> {
    const { retryMsMax = RETRY_MS_MAX } = this.#options;
    await this.#pause(GATHER_MS);
    let retryMs = RETRY_MS_MIN;
    while (!this.#isClosed) {
      this.#isAsked = false;
      const batch = await this.#next();
      if (batch?.length === 0) {
        if (this.#isAsked) continue;
        break;
      }
      const isDelivered = batch !== undefined && (await this.#deliver(batch));
      if (this.#isClosed) break;
      if (isDelivered && (await this.#remove(batch))) {
        retryMs = RETRY_MS_MIN;
        continue;
      }
      this.#countBytes();
      await this.#pause(retryMs);
      retryMs = Math.min(retryMs * 2, retryMsMax);
    }
    // No await between the last check and this line: a capture that is added later must begin a new delivery.
    this.#delivering = undefined;
  }

  /** Delivers a batch. Returns false if it must be delivered again. */
  async #deliver(batch: readonly OutboxRow[]): Promise<boolean> {
    const records = batch.flatMap((row) => readRecord(JSON.parse(row.record)) ?? []);
    try {
      const signal = AbortSignal.timeout(CAPTURE_MS);
      const states =
        records.length === 0 ? [] : await this.#options.target.capture(records, signal);
      this.#batchMax = BATCH_RECORDS_MAX;
      if (states.includes('rejected')) this.#warn('The memory refused a record.');
      return true;
    } catch (error) {
      if (!(error instanceof MemoryError) || error.reason !== 'invalid') return false;
      // One of the captures is invalid. Deliver each one in a batch of its own, to find the invalid one and drop it.
      if (batch.length > 1) this.#batchMax = 1;
      if (batch.length > 1) return false;
      this.#warn('The memory refused a record.');
      return true;
    }
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

  /** Returns the number of waiting captures; undefined if the file cannot be read now. */
  #count(): number | undefined {
    try {
      const sql = 'SELECT count(*) AS count FROM outbox WHERE target = ?';
      const { file, name } = this.#options;
      return file.use((rows) => rows.get<{ count: number }>(sql, name)?.count);
    } catch {
      return undefined;
    }
  }

  /** Returns the oldest waiting captures, as many as fit a batch; undefined if the file cannot be read now. */
  async #next(): Promise<readonly OutboxRow[] | undefined> {
    const { file, writer, name } = this.#options;
    await writer.caughtUp(WRITE_MS);
    try {
      const sql = 'SELECT n, record FROM outbox WHERE target = ? ORDER BY n LIMIT ?';
      const rows = file.use((state) => state.all<OutboxRow>(sql, name, this.#batchMax));
      let chars = 0;
      const count = rows.findIndex(({ record }, at) => {
        chars += record.length;
        return at > 0 && chars > BATCH_CHARS_MAX;
      });
      if (rows.length === 0) this.#waitingBytes = 0;
      return count === -1 ? rows : rows.slice(0, count);
    } catch {
      return undefined;
    }
  }

  /** Removes rows that the memory has stored or refused. Returns false if that fails; then they are delivered again. */
  async #remove(batch: readonly OutboxRow[]): Promise<boolean> {
    const numbers = JSON.stringify(batch.map(({ n }) => n));
    const isRemoved = await this.#options.writer.commit((rows) => {
      rows.run('DELETE FROM outbox WHERE n IN (SELECT value FROM json_each(?))', numbers);
    }, WRITE_MS);
    const bytes = batch.reduce((sum, { record }) => sum + Buffer.byteLength(record), 0);
    if (isRemoved) this.#waitingBytes = Math.max(0, this.#waitingBytes - bytes);
    return isRemoved;
  }

  /** Counts the waiting bytes after a first failed delivery, because earlier processes may have left many captures. */
  #countBytes(): void {
    if (this.#areBytesCounted) return;
    const { file, name } = this.#options;
    try {
      const sql = `SELECT coalesce(sum(octet_length(record)), 0) AS bytes FROM outbox WHERE target = ?`;
      this.#waitingBytes = file.use((rows) => rows.get<{ bytes: number }>(sql, name)?.bytes ?? 0);
      this.#areBytesCounted = true;
    } catch {
      // The bytes are counted after the next failed delivery.
    }
  }
}
