import { Recent } from '../../../../src/core/bytes/recent.ts';
import {
  FoundEntries,
  isWrittenOnce,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
} from '../../../../src/core/ledger/entries.ts';
import type { Ledger, LedgerRow } from '../../../../src/ports/ledger.ts';
import { forgottenIn } from '../../../../src/adapters/files/marks.ts';
import { within } from '../../../../src/adapters/within.ts';
import { Journal, type JournalOptions, type LeftJournal, takeJournals } from './journal.ts';
import { bytesOf, entryOf, rowFrom, rowOf } from '../../../../src/adapters/state/ledger-row.ts';

/**
 * The ledger of a service has three parts: a table of the database; a journal of the entries that the table does not
 * have yet, so that a kill loses none; and a cache, which saves queries. A failure of the ledger does not end a
 * request, which continues without the missing entries.
 */

/**
 * Bound on the bytes of cached entries. A prompt has two or three entries, and most blocks are empty or short. The
 * entries of 16 conversations with 150 prompts each fit, or those of 2,000 prompts with a block of 2 kB.
 */
const ROWS_BYTES_MAX = 4 * 1024 * 1024;
/**
 * Bound on cached keys without an entry, 200 bytes each. A long conversation looks up two or three keys for each
 * prompt.
 */
const ABSENT_MAX = 20_000;
const JOURNAL_BYTES_MAX = 16 * 1024 * 1024;
/**
 * How long svc caches that a key has no entry, if no other node uses the table. In a tool loop a request comes every
 * few seconds, and should not look up every old message again. The time is limited, so that an entry of another process
 * is found at most a minute later.
 */
const ABSENT_MS = 60_000;
const RETRY_MS = 1000;
/** Deadline of a commit: short, because the user waits meanwhile. A commit takes 5 ms in the same network. */
const COMMIT_MS = 250;
/** Deadline of writing the waiting entries to the table, which takes some milliseconds. */
const STORE_MS = 30_000;
/** How long `close` waits for the table. */
const CLOSE_MS = 5_000;

/** The database table that stores entries until 90 days after their last change. Other nodes may use it too. */
export interface LedgerStore {
  findEntries(keys: readonly string[]): Promise<readonly LedgerRow[]>;
  recordEntries(rows: readonly LedgerRow[]): Promise<void>;
}

export interface LedgerOptions {
  readonly folder: string;
  readonly store: LedgerStore;
  /** True if other nodes use the same table. Each node has its own journal. */
  readonly isShared?: boolean;
  report(line: string): void;
}

export class JournalLedger implements Ledger {
  readonly isShared: boolean;
  readonly #options: LedgerOptions;
  readonly #journal: Journal;
  /** Cached rows, in the order of last use. */
  readonly #rows = new Recent<string, LedgerRow>(ROWS_BYTES_MAX, bytesOf);
  /** Keys without an entry in the table. The value is the end of ABSENT_MS, by `performance.now()`. */
  readonly #absent = new Recent<string, number>(ABSENT_MAX);
  /** Entries that the table does not have yet, by key. */
  readonly #undrained = new Map<string, LedgerRow>();
  /**
   * The keys in `#undrained` whose entries were made before the last purge, so that their blocks may quote a purged
   * text. The table empties such a block when the entry is written to it. Until then the entry is not used.
   */
  readonly #suspect = new Set<string>();
  readonly #forgottenAt: () => number;
  /** How often the list of changes has reported a purge, or that anything may have changed. */
  #forgets = 0;
  #generation: number;
  #isDraining = false;
  #isClosed = false;
  #draining: Promise<void> = Promise.resolve();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.isShared = options.isShared === true;
    this.#forgottenAt = forgottenIn(options.folder);
    this.#generation = this.#forgottenAt();
    const journal: JournalOptions = {
      folder: options.folder,
      name: 'ledger',
      bytesMax: JOURNAL_BYTES_MAX,
    };
    this.#journal = new Journal(journal);
    // Read the file at once, because the first request after a kill must find the entries of earlier requests.
    this.#adopt(journal);
  }

  generation(): number {
    const now = this.#forgottenAt() + this.#forgets;
    if (now !== this.#generation) {
      this.#generation = now;
      this.#rows.clear();
      this.#absent.clear();
      for (const key of this.#undrained.keys()) this.#suspect.add(key);
    }
    return now;
  }

  /** Drops the cached rows, because texts were purged or may have been. */
  forget(): void {
    this.#forgets += 1;
    this.generation();
  }

  async find(addresses: readonly LedgerAddress[], withinMs: number): Promise<FoundEntries> {
    const generation = this.generation();
    const now = performance.now();
    const end = now + withinMs;
    const byKey = new Map(addresses.map((address) => [keyOf(address), address]));
    const rows = new Map<string, LedgerRow>();
    const unknown: string[] = [];
    for (const key of byKey.keys()) {
      const row = this.#rows.get(key) ?? this.#undrainedRow(key);
      if (row !== undefined) rows.set(key, row);
      else if ((this.#absent.peek(key) ?? -Infinity) < now) unknown.push(key);
    }
    // Rows that arrive after the deadline miss this request; #keep() may cache them for later ones.
    const isAnswered =
      unknown.length === 0 || (await within(withinMs, this.#ask(unknown, byKey, rows)));
    // If a purge came meanwhile, look all keys up again.
    if (unknown.length > 0 && this.generation() !== generation) {
      const left = end - performance.now();
      return left > 0 ? this.find(addresses, left) : new FoundEntries([], 'late');
    }
    const entries = Array.from(rows.values(), (row) => {
      const address = byKey.get(row.key);
      return address === undefined ? undefined : entryOf(row, address);
    }).filter((entry) => entry !== undefined);
    if (isAnswered === undefined) return new FoundEntries(entries, 'late');
    return new FoundEntries(entries, isAnswered ? undefined : 'unavailable');
  }

  async record(entries: readonly LedgerEntry[]): Promise<void> {
    const rows = entries.map(rowOf).filter((row) => !this.#stands(row));
    if (rows.length === 0) return;
    try {
      this.#journal.append(rows.map((row) => JSON.stringify(row)));
    } catch {
      this.#options.report(
        'svc could not write the ledger, because the disk is full or read-only.',
      );
    }
    this.#take(rows);
    this.#drainSoon();
  }

  async commit(entries: readonly LedgerEntry[]): Promise<boolean> {
    if (!this.isShared) {
      await this.record(entries);
      return true;
    }
    if (entries.length === 0) return true;
    const rows = entries.map(rowOf);
    const stored = this.#options.store.recordEntries(rows).then(
      () => true,
      () => false,
    );
    if ((await within(COMMIT_MS, stored)) !== true) return false;
    // The table now has these entries, or others with the same keys, which they may not replace.
    for (const { key } of rows) this.#undrained.delete(key);
    return true;
  }

  /** True while this node writes entries to a table that it shares, so that another node may not find them yet. */
  get isHandingOver(): boolean {
    return this.isShared && this.#isDraining;
  }

  /** Resolves when the table has all entries so far, or cannot be reached, or `withinMs` is over. */
  async handedOver(withinMs: number): Promise<void> {
    await within(withinMs, this.#draining);
  }

  /** Closes the ledger when the table has all entries or cannot be reached, at the latest after CLOSE_MS. */
  async close(): Promise<void> {
    // If the store is unavailable, the process must still end: the journal keeps the rows.
    await within(CLOSE_MS, this.#draining);
    this.#isClosed = true;
    this.#journal.close();
  }

  #adopt(journal: JournalOptions): void {
    const left = takeJournals(journal);
    for (const { values } of left) this.#take(values.flatMap((value) => rowFrom(value) ?? []));
    if (left.length > 0) this.#draining = this.#drainLeft(left);
  }

  /** Says whether a row is one that is written only once, and is already cached or waiting for the table. */
  #stands({ key, isOnce }: LedgerRow): boolean {
    return isOnce === true && (this.#rows.has(key) || this.#undrained.has(key));
  }

  #take(rows: readonly LedgerRow[]): void {
    for (const row of rows) {
      if (this.#stands(row)) continue;
      this.#absent.delete(row.key);
      this.#suspect.delete(row.key);
      this.#undrained.set(row.key, row);
      if (!this.isShared) this.#rows.set(row.key, row);
    }
  }

  #undrainedRow(key: string): LedgerRow | undefined {
    return this.#suspect.has(key) ? undefined : this.#undrained.get(key);
  }

  /** Caches a row. With several nodes, only a row that is written once, because another node may change the others. */
  #keep(row: LedgerRow, address: LedgerAddress | undefined): void {
    if (this.isShared && (address === undefined || !isWrittenOnce(address))) return;
    this.#rows.set(row.key, row);
  }

  /** Adds the table's rows for keys to `found`, and lets #keep() cache them. False: no answer, or a purge meanwhile. */
  async #ask(
    keys: readonly string[],
    addresses: ReadonlyMap<string, LedgerAddress>,
    found: Map<string, LedgerRow>,
  ): Promise<boolean> {
    const generation = this.#generation;
    if (keys.some((key) => this.#suspect.has(key)) && !(await this.#drain())) return false;
    try {
      const rows = await this.#options.store.findEntries(keys);
      // If a purge came meanwhile, find() looks up all keys again.
      if (this.generation() !== generation) return false;
      for (const row of rows) {
        // A row that was recorded while the table was asked is newer than the table's row.
        const newest = this.#rows.get(row.key) ?? this.#undrainedRow(row.key) ?? row;
        found.set(row.key, newest);
        this.#keep(newest, addresses.get(row.key));
      }
    } catch {
      return false;
    }
    this.#noteAbsent(keys.filter((key) => !found.has(key) && !this.#rows.has(key)));
    return true;
  }

  #noteAbsent(keys: readonly string[]): void {
    if (this.isShared) return;
    const until = performance.now() + ABSENT_MS;
    for (const key of keys) this.#absent.set(key, until);
  }

  #drainSoon(): void {
    if (this.#isDraining || this.#isClosed) return;
    this.#isDraining = true;
    this.#draining = this.#drainAfter(this.#draining);
  }

  async #drainLeft(left: readonly LeftJournal[]): Promise<void> {
    if (await this.#drain()) for (const journal of left) journal.remove();
  }

  async #drainAfter(earlier: Promise<void>): Promise<void> {
    await earlier;
    const isDone = await this.#drain();
    this.#isDraining = false;
    if (!isDone) setTimeout(() => this.#drainSoon(), RETRY_MS).unref();
  }

  async #drain(): Promise<boolean> {
    while (this.#undrained.size > 0) {
      const batch = [...this.#undrained.values()];
      try {
        const stored = this.#options.store.recordEntries(batch).then(() => true);
        // After a missed deadline the rows are written again, which changes nothing.
        if ((await within(STORE_MS, stored)) !== true) return false;
      } catch {
        return false;
      }
      for (const row of batch) {
        if (this.#undrained.get(row.key) !== row) continue;
        this.#undrained.delete(row.key);
        this.#suspect.delete(row.key);
      }
    }
    try {
      this.#journal.reset();
    } catch {
      // The next process reads the lines again, which changes nothing.
    }
    return true;
  }
}
