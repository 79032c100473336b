import { forgetOldest } from '../../core/bytes/recent.ts';
import { captureKeyOf, readRecord } from '../../core/memory/record.ts';
import type { Memory, MemoryRecord } from '../../ports/memory.ts';
import type { Outbox } from '../../ports/outbox.ts';
import { Delivery } from '../delivery.ts';
import { within } from '../within.ts';
import type { StateFile } from './state-file.ts';
import type { StateWriter } from './state-writer.ts';

/**
 * Captures on their way to a memory. A row of `state.db` holds each until the memory says that it has it,
 * so neither a kill nor an unreachable memory loses one. Every process on the folder delivers what any of
 * them left.
 */

/** The memory on this machine; a memory service has a name of its own. */
export const STORE_TARGET = 'store';
/** R27. Some 30,000 exchanges: weeks of work without a memory. */
const WAITING_BYTES_MAX = 64 * 1024 * 1024;
/** A lock is held for a few milliseconds. */
const WRITE_MS = 1000;
/** Records that this process kept lately: a day of work, about 100 bytes each. */
const KEPT_MAX = 8192;
interface OutboxRow {
  readonly n: number;
  readonly record: string;
}

export interface StateOutboxOptions {
  readonly file: StateFile;
  readonly writer: StateWriter;
  /** The name of the memory: records for one must not go to another. */
  readonly name: string;
  readonly target: Pick<Memory, 'capture'>;
  /** The longest pause between two tries, in milliseconds. */
  readonly retryMsMax?: number | undefined;
  report(line: string): void;
}

export class StateOutbox implements Outbox {
  readonly #options: StateOutboxOptions;
  /** The records that this process has kept: the words of an exchange are offered with each of its requests. */
  readonly #kept = new Set<string>();
  /** Counts the bytes of all records that this process knows to wait. It bounds what the outbox takes. */
  #waitingBytes = 0;
  #areBytesCounted = false;
  readonly #delivery: Delivery<OutboxRow>;
  #isClosed = false;

  /** Delivers what an earlier process left, once the caller has done what is urgent. */
  constructor(options: StateOutboxOptions) {
    this.#options = options;
    this.#delivery = new Delivery({
      ...options,
      rows: {
        next: (most, charsMax) => this.#next(most, charsMax),
        recordOf: ({ record }) => readRecord(JSON.parse(record)),
        remove: (rows) => this.#remove(rows),
        waits: () => this.#countBytes(),
      },
    });
    setImmediate(() => void this.#delivery.begin());
  }

  get waiting(): number {
    return this.#count() ?? 0;
  }

  keep(records: readonly MemoryRecord[]): boolean {
    if (this.#isClosed) return false;
    const fresh = records.filter((record) => !this.#kept.has(captureKeyOf(record)));
    if (fresh.length === 0) return true;
    const lines = fresh.map((record) => JSON.stringify(record));
    const bytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0);
    if (this.#waitingBytes + bytes > WAITING_BYTES_MAX) {
      this.#delivery.warn('svc could not store a memory, because the outbox is full.');
      return false;
    }
    const values = JSON.stringify(lines);
    const { writer, name } = this.#options;
    const written = writer.put((rows) => {
      const sql = `INSERT INTO outbox (target, record, at)
        SELECT ?, value, ? FROM json_each(?) ORDER BY key`;
      rows.run(sql, name, Date.now(), values);
    });
    for (const record of fresh) this.#kept.add(captureKeyOf(record));
    forgetOldest(this.#kept, KEPT_MAX);
    this.#waitingBytes += bytes;
    void this.#delivery.begin();
    return written !== 'failed';
  }

  async flush(withinMs: number): Promise<void> {
    await this.stored(withinMs);
  }

  async stored(withinMs: number): Promise<boolean> {
    const end = performance.now() + withinMs;
    if (!(await this.#options.writer.caughtUp(withinMs))) return false;
    while (!this.#isClosed && this.#count() !== 0) {
      const msLeft = end - performance.now();
      const delivered = this.#delivery.hurry().then(() => true);
      const isDone = within(msLeft, delivered);
      // oxlint-disable-next-line no-await-in-loop -- Records that are kept meanwhile are delivered next.
      if (msLeft <= 0 || (await isDone) !== true) return false;
    }
    return true;
  }

  /** The memory may have lost what it said that it holds: the same words are delivered again. */
  forgetSettled(): void {
    this.#kept.clear();
  }

  /** Waiting records stay in the file for the next process. */
  close(): void {
    this.#isClosed = true;
    this.#delivery.close();
  }

  /** Undefined where they cannot be counted now. */
  #count(): number | undefined {
    try {
      const sql = 'SELECT count(*) AS count FROM outbox WHERE target = ?';
      const { file, name } = this.#options;
      return file.use((rows) => rows.get<{ count: number }>(sql, name)?.count);
    } catch {
      return undefined;
    }
  }

  async #next(most: number, charsMax: number): Promise<readonly OutboxRow[] | undefined> {
    const { file, writer, name } = this.#options;
    await writer.caughtUp(WRITE_MS);
    try {
      const sql = 'SELECT n, record FROM outbox WHERE target = ? ORDER BY n LIMIT ?';
      const rows = file.use((state) => state.all<OutboxRow>(sql, name, most));
      let chars = 0;
      const count = rows.findIndex(({ record }, at) => {
        chars += record.length;
        return at > 0 && chars > charsMax;
      });
      if (rows.length === 0) this.#waitingBytes = 0;
      return count === -1 ? rows : rows.slice(0, count);
    } catch {
      return undefined;
    }
  }

  async #remove(batch: readonly OutboxRow[]): Promise<boolean> {
    const numbers = JSON.stringify(batch.map(({ n }) => n));
    const isRemoved = await this.#options.writer.commit((rows) => {
      rows.run('DELETE FROM outbox WHERE n IN (SELECT value FROM json_each(?))', numbers);
    }, WRITE_MS);
    const bytes = batch.reduce((sum, { record }) => sum + Buffer.byteLength(record), 0);
    if (isRemoved) this.#waitingBytes = Math.max(0, this.#waitingBytes - bytes);
    return isRemoved;
  }

  /** Once, when a delivery fails: an earlier process may have left a lot. */
  #countBytes(): void {
    if (this.#areBytesCounted) return;
    const { file, name } = this.#options;
    try {
      const sql = `SELECT coalesce(sum(octet_length(record)), 0) AS bytes FROM outbox WHERE target = ?`;
      this.#waitingBytes = file.use((rows) => rows.get<{ bytes: number }>(sql, name)?.bytes ?? 0);
      this.#areBytesCounted = true;
    } catch {
      // Counted at the next failure.
    }
  }
}
