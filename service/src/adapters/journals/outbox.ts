import { forgetOldest } from '../../../../src/core/bytes/recent.ts';
import type { Memory, MemoryRecord } from '../../../../src/ports/memory.ts';
import type { Outbox } from '../../../../src/ports/outbox.ts';
import { Delivery } from '../../../../src/adapters/delivery.ts';
import { within } from '../../../../src/adapters/within.ts';
import {
  findOrphans,
  Journal,
  type JournalOptions,
  type OrphanedJournal,
} from '../../../../src/adapters/journals/journal.ts';
import { captureKeyOf, readRecord } from '../../../../src/core/memory/record.ts';

/**
 * Captures on their way to the memory. A journal holds them until the memory says that it has them,
 * so neither a kill nor an unreachable memory loses one. A record may be delivered twice and is
 * stored once: the memory identifies it by its digest.
 */

/** The journal's, unless it is for another memory than the one on this machine. */
export const OUTBOX_NAME = 'outbox';
/** R27. Some 30,000 exchanges: weeks of work without a memory. */
const JOURNAL_BYTES_MAX = 64 * 1024 * 1024;
/** Digests of records that the memory holds: a day of work, about 100 bytes each. */
const SETTLED_MAX = 8192;
/** A journal that is never quite empty is rewritten when most of it was delivered. */
const REPLACE_BYTES_MIN = 4 * 1024 * 1024;
interface WaitingRecord {
  readonly record: MemoryRecord;
  /** JSON, as it is in the journal. */
  readonly line: string;
  /**
   * Set for the record of a dead process: its journal is removed when the last of its records is
   * safe.
   */
  readonly orphan?: Orphan;
}

interface Orphan {
  readonly journal: OrphanedJournal;
  left: number;
}

export interface OutboxOptions {
  readonly folder: string;
  /** Name of the journal: records for one memory must not go to another. */
  readonly name?: string;
  readonly target: Pick<Memory, 'capture'>;
  /** The longest pause between two tries, in milliseconds. */
  readonly retryMsMax?: number;
  report(line: string): void;
}

export class JournalOutbox implements Outbox {
  readonly #options: OutboxOptions;
  readonly #journal: Journal;
  readonly #waiting = new Map<string, WaitingRecord>();
  readonly #settled = new Set<string>();
  #waitingBytes = 0;
  readonly #delivery: Delivery<WaitingRecord>;
  #isClosed = false;
  #hasAdopted = false;
  /** Those who wait for some of the records. */
  readonly #awaited = new Set<{ readonly keys: Set<string>; resolve(): void }>();

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#delivery = new Delivery({
      ...options,
      rows: {
        next: async (most, charsMax) => this.#next(most, charsMax),
        recordOf: ({ record }) => record,
        remove: async (rows) => this.#remove(rows),
      },
    });
    this.#journal = new Journal(this.#journalOptions());
    setImmediate(() => this.#adopt());
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  keep(records: readonly MemoryRecord[]): boolean {
    if (this.#isClosed) return false;
    const fresh = records.filter((record) => !this.#isKnown(captureKeyOf(record)));
    if (fresh.length === 0) return true;
    const lines = fresh.map((record) => JSON.stringify(record));
    try {
      this.#journal.append(lines);
    } catch {
      this.#delivery.warn(
        'svc could not store a memory, because the disk is full or read-only, or the outbox is full.',
      );
      return false;
    }
    for (const [place, record] of fresh.entries()) this.#add({ record, line: lines[place] ?? '' });
    void this.#delivery.begin();
    return true;
  }

  async flush(withinMs: number): Promise<void> {
    this.#adopt();
    if (this.#waiting.size > 0) await within(withinMs, this.#delivery.hurry());
  }

  async stored(withinMs: number): Promise<boolean> {
    const keys = new Set(this.#waiting.keys());
    if (keys.size === 0) return true;
    const awaited = { keys, resolve: (): void => undefined };
    const settled = new Promise<true>((resolve) => {
      awaited.resolve = () => resolve(true);
    });
    this.#awaited.add(awaited);
    void this.#delivery.hurry();
    try {
      return (await within(withinMs, settled)) === true;
    } finally {
      // While the memory is away, each of many requests names all that waits.
      this.#awaited.delete(awaited);
    }
  }

  /** The memory may have lost what it said that it holds: the same words are delivered again. */
  forgetSettled(): void {
    this.#settled.clear();
  }

  /** Waiting records stay in the journal for the next process. */
  close(): void {
    this.#isClosed = true;
    this.#delivery.close();
    this.#journal.close();
  }

  #journalOptions(): JournalOptions {
    return {
      folder: this.#options.folder,
      name: this.#options.name ?? OUTBOX_NAME,
      bytesMax: JOURNAL_BYTES_MAX,
    };
  }

  #isKnown(key: string): boolean {
    return this.#settled.has(key) || this.#waiting.has(key);
  }

  #add(waiting: WaitingRecord): void {
    this.#waiting.set(captureKeyOf(waiting.record), waiting);
    this.#waitingBytes += waiting.line.length;
  }

  #adopt(): void {
    if (this.#hasAdopted || this.#isClosed) return;
    this.#hasAdopted = true;
    for (const journal of findOrphans(this.#journalOptions())) {
      const records = journal.values.flatMap((value) => readRecord(value) ?? []);
      const orphan: Orphan = { journal, left: 0 };
      for (const record of records) {
        // A record that waits already is in another journal.
        if (this.#isKnown(captureKeyOf(record))) continue;
        orphan.left += 1;
        this.#add({ record, line: JSON.stringify(record), orphan });
      }
      if (orphan.left === 0) journal.remove();
    }
    if (this.#waiting.size > 0) void this.#delivery.begin();
  }

  #next(most: number, charsMax: number): WaitingRecord[] {
    const batch: WaitingRecord[] = [];
    let chars = 0;
    for (const waiting of this.#waiting.values()) {
      chars += waiting.line.length;
      if (batch.length >= most || (batch.length > 0 && chars > charsMax)) break;
      batch.push(waiting);
    }
    return batch;
  }

  #remove(rows: readonly WaitingRecord[]): boolean {
    for (const waiting of rows) this.#settle(waiting);
    this.#shrinkJournal();
    return true;
  }

  #settle({ record, line, orphan }: WaitingRecord): void {
    const key = captureKeyOf(record);
    this.#waiting.delete(key);
    this.#waitingBytes -= line.length;
    this.#settled.add(key);
    for (const awaited of this.#awaited) {
      awaited.keys.delete(key);
      if (awaited.keys.size > 0) continue;
      this.#awaited.delete(awaited);
      awaited.resolve();
    }
    forgetOldest(this.#settled, SETTLED_MAX);
    if (orphan === undefined) return;
    orphan.left -= 1;
    if (orphan.left === 0) orphan.journal.remove();
  }

  #shrinkJournal(): void {
    try {
      if (this.#waiting.size === 0) this.#journal.reset();
      const isMostlyDelivered = this.#journal.bytes > 2 * this.#waitingBytes + REPLACE_BYTES_MIN;
      if (isMostlyDelivered) this.#journal.replace(this.#ownLines());
    } catch {
      // The old lines stay: they are delivered twice and stored once.
    }
  }

  #ownLines(): string[] {
    return [...this.#waiting.values()].flatMap(({ line, orphan }) => (orphan ? [] : [line]));
  }
}
