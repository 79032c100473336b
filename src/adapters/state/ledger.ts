import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import { Recent } from '../../core/bytes/recent.ts';
import {
  FoundEntries,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type QuotedRecord,
} from '../../core/ledger/entries.ts';
import type { Ledger, LedgerRow } from '../../ports/ledger.ts';
import { entryOf, quotedIn, rowOf, rowFrom } from '../journals/ledger-row.ts';
import type { Statements } from '../store/driver.ts';
import { isBusy } from '../store/driver.ts';
import type { StateFile } from './state-file.ts';
import type { StateWriter } from './state-writer.ts';

/**
 * The ledger in `state.db`. It caches entries that it has read or found missing, which saves 1.4 us per key: some
 * hundred keys in each round of a tool loop. A question first reads the rows written since the last one (4 us).
 * These are all changes by any process, so the cache is exact.
 */

/** Bound on the cache: the entries of 16 conversations of 150 prompts, or 20,000 addresses without an entry. */
const KNOWN_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes that a row takes in memory beside its texts. */
const ROW_BYTES = 200;
/** Keys that are read in one step. 8 keys take 10 us, 500 take 1 ms; between steps other requests run. */
const STEP_KEYS = 500;
/** Most new rows of other processes that are applied to the cache (4 ms); with more, it is cheaper to drop it. */
const NEW_ROWS_MAX = 2000;
const RETRY_MS = 2;
/** How long a decision waits for a lock. After that, the request goes on without it. */
const COMMIT_MS = 250;
/** How long an entry that only describes a request waits for a lock. Later it is written in the background. */
const RECORD_MS = 50;

interface NewRow {
  readonly n: number;
  readonly key: string;
  readonly value: string;
}

/** A cached look-up. `row` is undefined if there is no entry. */
interface Known {
  readonly key: string;
  readonly row: LedgerRow | undefined;
}

/** An entry of this process that is not in the file yet. */
interface Unwritten {
  row: LedgerRow;
}

interface StateLedgerOptions {
  readonly file: StateFile;
  readonly writer: StateWriter;
}

export class StateLedger implements Ledger {
  readonly isShared = false;
  readonly #file: StateFile;
  readonly #writer: StateWriter;
  /** Cached look-ups, which are current up to row number `#last`. */
  readonly #known = new Recent<string, Known>(KNOWN_BYTES_MAX, ({ key, row }) =>
    row === undefined ? ROW_BYTES + key.length : bytesOf(row),
  );
  readonly #unwritten = new Recent<string, Unwritten>(KNOWN_BYTES_MAX, ({ row }) => bytesOf(row));
  /** Keys of addresses. A conversation's requests have the same address objects; keys are most of a look-up. */
  readonly #keys = new WeakMap<LedgerAddress, string>();
  #last = 0;
  #opens = 0;
  #generation = 0;

  constructor({ file, writer }: StateLedgerOptions) {
    this.#file = file;
    this.#writer = writer;
  }

  generation(): number {
    try {
      this.#file.ask((rows) => this.#follow(rows));
    } catch {
      // If the file cannot be read now, the generation is checked again when a block is recorded.
    }
    return this.#generation;
  }

  /** Forgets everything, because the memory is another one. */
  forget(): void {
    this.#writer.put(noteForgotten);
  }

  async find(addresses: readonly LedgerAddress[], withinMs: number): Promise<FoundEntries> {
    const keys = addresses.map((address) => this.#keyOf(address));
    const found = new Map<string, LedgerRow>();
    for (const key of this.#unwritten.size === 0 ? [] : keys) {
      const unwritten = this.#unwritten.get(key);
      if (unwritten !== undefined) found.set(key, unwritten.row);
    }
    const open = found.size === 0 ? keys : keys.filter((key) => !found.has(key));
    const end = performance.now() + withinMs;
    let generation: number | undefined;
    const entries = (): LedgerEntry[] =>
      addresses.flatMap((address, at) => {
        const row = found.get(keys[at] ?? '');
        return row === undefined ? [] : entryOf(row, address);
      });
    for (let at = 0; at < open.length;) {
      try {
        at = this.#file.use((rows) => this.#findSome(rows, { keys: open, at, found }));
      } catch (error) {
        if (!isBusy(error)) return new FoundEntries(entries(), 'unavailable');
        await sleep(RETRY_MS);
      }
      generation ??= this.#generation;
      // A text was forgotten between two steps, so look all keys up again.
      if (this.#generation !== generation) return this.find(addresses, end - performance.now());
      if (at === open.length) break;
      await nextRound();
      if (performance.now() > end) return new FoundEntries(entries(), 'late');
    }
    return new FoundEntries(entries());
  }

  async record(entries: readonly LedgerEntry[]): Promise<void> {
    const rows = entries.map(rowOf);
    if (rows.length === 0) return;
    const generation = this.#generation;
    const write = (state: Statements): void =>
      state.transaction(() => this.#put(state, rows, this.#follow(state) !== generation));
    const unwritten = rows.map((row): Unwritten => ({ row }));
    const written = this.#writer.put(write, () => {
      for (const one of unwritten) {
        if (this.#unwritten.get(one.row.key) === one) this.#unwritten.delete(one.row.key);
      }
    });
    if (written === 'done') return;
    for (const one of unwritten) {
      const { key, isOnce } = one.row;
      if (isOnce !== true || !this.#unwritten.has(key)) this.#unwritten.set(key, one);
    }
    if (written === 'waits') await this.#writer.caughtUp(RECORD_MS);
  }

  async commit(entries: readonly LedgerEntry[]): Promise<boolean> {
    if (entries.length === 0) return true;
    const rows = entries.map(rowOf);
    const generation = this.#generation;
    let isLate = false;
    const write = (state: Statements): void =>
      state.transaction(() => {
        // If something was forgotten meanwhile, it may be in one of the blocks.
        const isChanged = this.#follow(state) !== generation;
        isLate = isChanged && rows.some((row) => quotedIn(row).length > 0);
        if (!isLate) this.#put(state, rows, false);
      });
    return (await this.#writer.commit(write, COMMIT_MS)) && !isLate;
  }

  #keyOf(address: LedgerAddress): string {
    const known = this.#keys.get(address);
    if (known !== undefined) return known;
    const key = keyOf(address);
    this.#keys.set(address, key);
    return key;
  }

  /** Returns the index of the first key that is still to be found. */
  #findSome(
    rows: Statements,
    asked: {
      readonly keys: readonly string[];
      readonly at: number;
      readonly found: Map<string, LedgerRow>;
    },
  ): number {
    this.#follow(rows);
    const { keys, found } = asked;
    const unknown = new Set<string>();
    let { at } = asked;
    for (; at < keys.length && unknown.size < STEP_KEYS; at += 1) {
      const key = keys[at] ?? '';
      const known = this.#known.peek(key);
      if (known === undefined) unknown.add(key);
      else if (known.row !== undefined) found.set(key, known.row);
    }
    if (unknown.size === 0) return at;
    const read = rows.all<Omit<NewRow, 'n'>>(
      'SELECT key, value FROM ledger WHERE key IN (SELECT value FROM json_each(?))',
      JSON.stringify([...unknown]),
    );
    for (const { key, value } of read) {
      const row = rowIn(key, value);
      if (row !== undefined) found.set(key, row);
    }
    for (const key of unknown) this.#known.set(key, { key, row: found.get(key) });
    return at;
  }

  /** Applies what any process has written since. Returns the generation. */
  #follow(rows: Statements): number {
    if (this.#opens !== this.#file.opens) this.#begin(rows);
    const fresh = rows.all<NewRow>(
      `SELECT n, key, value FROM ledger WHERE n > ? ORDER BY n LIMIT ${NEW_ROWS_MAX}`,
      this.#last,
    );
    if (fresh.length === NEW_ROWS_MAX) {
      this.#known.clear();
      this.#last = lastOf(rows);
      this.#forgotten();
      return this.#generation;
    }
    for (const { n, key, value } of fresh) {
      this.#last = n;
      if (key === FORGOTTEN_KEY) this.#forgotten();
      else if (this.#known.has(key)) this.#known.set(key, { key, row: rowIn(key, value) });
    }
    return this.#generation;
  }

  /** Begins with a newly opened file. If it replaces another one, everything cached is dropped. */
  #begin(rows: Statements): void {
    if (this.#opens > 0) this.#generation += 1;
    this.#opens = this.#file.opens;
    this.#last = lastOf(rows);
    this.#known.clear();
  }

  /** Called after blocks were forgotten: empties those blocks in entries that are not written yet. */
  #forgotten(): void {
    this.#generation += 1;
    for (const one of this.#unwritten.values()) one.row = withoutQuotes(one.row);
  }

  #put(state: Statements, rows: readonly LedgerRow[], isLate: boolean): void {
    for (const row of rows) {
      const { key, isOnce } = row;
      state.run(
        isOnce === true
          ? 'INSERT INTO ledger (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING'
          : 'INSERT OR REPLACE INTO ledger (key, value) VALUES (?, ?)',
        key,
        valueOf(isLate ? withoutQuotes(row) : row),
      );
      // Another process may have written the entry first; the next look-up reads it.
      this.#known.delete(key);
    }
  }
}

function bytesOf({ key, block }: LedgerRow): number {
  return ROW_BYTES + key.length + block.length;
}

function lastOf(rows: Statements): number {
  return rows.get<{ n: number | null }>('SELECT max(n) AS n FROM ledger')?.n ?? 0;
}

/**
 * The key of the row that records the last forgetting. Each forgetting writes it again, so it gets a number after
 * all earlier rows, and no clock is needed. Entries' keys contain a colon, this one does not.
 */
const FORGOTTEN_KEY = 'forgotten';

/** Bound on rows: a year of heavy use. A block has 2 kB, so at most about 400 MB. */
const ROWS_MAX = 200_000;
/** Rows that are read together: 2 MB. */
const FORGET_ROWS = 1000;

interface StoredRow {
  readonly n: number;
  readonly key: string;
  readonly value: string;
}

/** Writes an entry as JSON, so that new members need no new column. */
function valueOf(row: LedgerRow): string {
  return JSON.stringify({ ...row, key: undefined, isOnce: undefined });
}

function rowIn(key: string, value: string): LedgerRow | undefined {
  const fields: unknown = JSON.parse(value);
  return typeof fields === 'object' ? rowFrom({ ...fields, key }) : undefined;
}

/** Returns an entry without its block, which still stops its prompt from being recalled for again. */
function withoutQuotes(row: LedgerRow): LedgerRow {
  return quotedIn(row).length === 0 ? row : { ...row, block: '' };
}

function noteForgotten(rows: Statements): void {
  rows.run('INSERT OR REPLACE INTO ledger (key, value) VALUES (?, ?)', FORGOTTEN_KEY, '{}');
}

/**
 * Empties blocks that quote such records, and returns how many. A forgotten text must not be sent again, even though
 * the provider's cache is broken once.
 */
export function emptyBlocks(rows: Statements, isForgotten: IsQuoted): number {
  return changeBlocks(rows, isForgotten, (row) => ({ ...row, block: '' }));
}

/** Makes blocks that quote such records too old for new conversations. Conversations that have them keep them. */
export function retireBlocks(rows: Statements, isRetired: IsQuoted): number {
  return changeBlocks(rows, isRetired, (row) => ({ ...row, at: 0 }));
}

/**
 * Changes rows in order of their numbers. The last ones are read in the transaction that writes the note of the
 * forgetting. So a block recorded before the note is changed here, and a process that records a later one reads the
 * note first.
 */
function changeBlocks(
  rows: Statements,
  isQuoted: IsQuoted,
  change: (row: LedgerRow) => LedgerRow,
): number {
  let changed = 0;
  let last = 0;
  for (;;) {
    const read = rows.transaction(() => {
      const some = quotingRows(rows, last);
      for (const { key, value } of some) {
        const row = rowIn(key, value);
        if (row === undefined || !quotedIn(row).some(isQuoted)) continue;
        const sql = 'INSERT OR REPLACE INTO ledger (key, value) VALUES (?, ?)';
        rows.run(sql, key, valueOf(change(row)));
        changed += 1;
      }
      last = some.at(-1)?.n ?? last;
      if (some.length < FORGET_ROWS) noteForgotten(rows);
      return some.length;
    });
    if (read < FORGET_ROWS) return changed;
  }
}

/** Finds all records that blocks quote, by space. */
export function placedRecords(rows: Statements): PlacedRecords {
  const placed = new Map<string, Set<string>>();
  for (let last = 0; ;) {
    const some = quotingRows(rows, last);
    for (const { ref, space } of some.flatMap(({ key, value }) =>
      quotedIn(rowIn(key, value) ?? NO_ROW),
    )) {
      placed.set(space, (placed.get(space) ?? new Set()).add(ref));
    }
    last = some.at(-1)?.n ?? last;
    if (some.length < FORGET_ROWS) return placed;
  }
}

export type PlacedRecords = ReadonlyMap<string, ReadonlySet<string>>;

const NO_ROW = { block: '' };

type IsQuoted = (record: QuotedRecord) => boolean;

/** Returns the next rows that may quote a record; most rows have no block. JSON writes a line end as two characters. */
function quotingRows(rows: Statements, last: number): readonly StoredRow[] {
  return rows.all<StoredRow>(
    "SELECT n, key, value FROM ledger WHERE n > ? AND instr(value, '\\nm_') ORDER BY n LIMIT ?",
    last,
    FORGET_ROWS,
  );
}

export function pruneLedger(rows: Statements): void {
  rows.run(
    'DELETE FROM ledger WHERE n <= (SELECT n FROM ledger ORDER BY n DESC LIMIT 1 OFFSET ?)',
    ROWS_MAX,
  );
}
