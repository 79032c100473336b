import { setImmediate as nextRound, setTimeout as sleep } from 'node:timers/promises';
import { Recent } from '../../core/bytes/recent.ts';
import {
  FORGOTTEN_KEY,
  FoundEntries,
  keyOf,
  type LedgerAddress,
  type LedgerEntry,
  type QuotedRecord,
} from '../../core/ledger/entries.ts';
import type { Ledger, LedgerRow } from '../../ports/ledger.ts';
import { bytesOf, entryOf, quotedIn, ROW_BYTES, rowOf, rowFrom } from './ledger-row.ts';
import type { Statements } from '../store/driver.ts';
import { isBusy } from '../store/driver.ts';
import type { StateFile } from './state-file.ts';
import type { StateWriter } from './state-writer.ts';

/**
 * The ledger in `state.db`. It caches look-ups, also of missing entries, which saves 1.4 us per key; a round of a tool
 * loop looks up some hundred keys. Each call first reads the rows that any process has written since the previous call
 * (4 us), and updates the cache with them. So the cache misses no write; it may keep a row that pruning has deleted.
 */

/** Bound on the cache: about 16 conversations of 150 prompts, or 20,000 addresses without an entry. */
const KNOWN_BYTES_MAX = 4 * 1024 * 1024;
/** Bound on keys that are read in one step (500 take 1 ms). Between two steps the event loop serves other requests. */
const STEP_KEYS = 500;
/** Bound on new rows that are applied to the cache (4 ms). If there are more, the cache is dropped instead. */
const NEW_ROWS_MAX = 2000;
const RETRY_MS = 2;
/** How long commit() waits for a lock. After that, the request goes on without the change. */
const COMMIT_MS = 250;
/** How long record() waits for a lock. After that, the entry is written in the background. */
const RECORD_MS = 50;

interface StoredRow {
  readonly n: number;
  readonly key: string;
  readonly value: string;
}

/** A cached look-up. `row` is undefined if the ledger has no entry with this key. */
interface Known {
  readonly key: string;
  readonly row: LedgerRow | undefined;
}

/** An entry of this process that is not in the file yet. */
interface Unwritten {
  row: LedgerRow;
}

export class StateLedger implements Ledger {
  readonly isShared = false;
  readonly #file: StateFile;
  readonly #writer: StateWriter;
  /** Cached look-ups. They are up to date with the rows up to number `#last`. */
  readonly #known = new Recent<string, Known>(KNOWN_BYTES_MAX, ({ key, row }) =>
    row === undefined ? ROW_BYTES + key.length : bytesOf(row),
  );
  readonly #unwritten = new Recent<string, Unwritten>(KNOWN_BYTES_MAX, ({ row }) => bytesOf(row));
  /**
   * Cached keys of addresses: making a key takes most of a look-up, and later requests use the same address objects.
   */
  readonly #keys = new WeakMap<LedgerAddress, string>();
  #last = 0;
  #opens = 0;
  #generation = 0;

  constructor({ file, writer }: { readonly file: StateFile; readonly writer: StateWriter }) {
    this.#file = file;
    this.#writer = writer;
  }

  generation(): number {
    try {
      this.#file.ask((rows) => this.#follow(rows));
    } catch {
      // The file cannot be read now. commit() and record() check the generation again.
    }
    return this.#generation;
  }

  /** Changes the generation, because `memory.db` was replaced: the blocks in use may quote texts of the old file. */
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
      // A text was forgotten between two steps. Look up all keys again.
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
        // A changed generation means that a text was forgotten since this call began, or earlier but unknown to this
        // process until now. One of these blocks may quote the text. What this process knew before the call, callers
        // notice themselves by comparing generation().
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

  /** Looks up some keys from `at` on. Returns the index of the first key that is not looked up yet. */
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
    const read = rows.all<Omit<StoredRow, 'n'>>(
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

  /** Reads the rows that any process has written since the last call, and applies them. Returns the generation. */
  #follow(rows: Statements): number {
    if (this.#opens !== this.#file.opens) this.#begin(rows);
    const fresh = rows.all<StoredRow>(
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

  /**
   * Prepares for a file that was opened since the last call. If there was an earlier file, changes the generation and
   * writes the cached rows into the new file: it may be a backup, which lacks the entries of current conversations.
   */
  #begin(rows: Statements): void {
    if (this.#opens > 0) {
      const known = this.#known.values().flatMap(({ row }) => row ?? []);
      this.#put(
        rows,
        known.map((row) => ({ ...row, isOnce: true })),
        false,
      );
      this.#generation += 1;
    }
    this.#opens = this.#file.opens;
    this.#last = lastOf(rows);
    this.#known.clear();
  }

  /** Changes the generation after texts were forgotten, and empties the blocks in entries that are not written yet. */
  #forgotten(): void {
    this.#generation += 1;
    for (const one of this.#unwritten.values()) one.row = withoutQuotes(one.row);
  }

  /**
   * Writes rows. `isLate`: texts were forgotten since the rows were made, so blocks that quote records are written
   * empty.
   */
  #put(state: Statements, rows: readonly LedgerRow[], isLate: boolean): void {
    for (const row of rows) {
      const { key, isOnce } = row;
      state.run(
        isOnce === true
          ? 'INSERT INTO ledger (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING'
          : REPLACE,
        key,
        valueOf(isLate ? withoutQuotes(row) : row),
      );
      // Another process may have written the entry first; the next look-up reads it.
      this.#known.delete(key);
    }
  }
}

function lastOf(rows: Statements): number {
  return rows.get<{ n: number | null }>('SELECT max(n) AS n FROM ledger')?.n ?? 0;
}

const REPLACE = 'INSERT OR REPLACE INTO ledger (key, value) VALUES (?, ?)';

/** Bound on rows: a year of heavy use, and about 400 MB if every row were a block of 2 kB. */
const ROWS_MAX = 200_000;
/** Rows that are read and changed in one transaction: about 2 MB. */
const FORGET_ROWS = 1000;

/** Returns a row's value as JSON. The key has a column of its own; `isOnce` only matters while writing. */
function valueOf(row: LedgerRow): string {
  return JSON.stringify({ ...row, key: undefined, isOnce: undefined });
}

function rowIn(key: string, value: string): LedgerRow | undefined {
  const fields: unknown = JSON.parse(value);
  return typeof fields === 'object' ? rowFrom({ ...fields, key }) : undefined;
}

/**
 * Returns a row without its block if the block quotes records. The empty row prevents a second recall for its prompt.
 */
function withoutQuotes(row: LedgerRow): LedgerRow {
  return quotedIn(row).length === 0 ? row : { ...row, block: '' };
}

/** Writes the row FORGOTTEN_KEY again. It gets a new number, so every process reads it as a new row. */
function noteForgotten(rows: Statements): void {
  rows.run(REPLACE, FORGOTTEN_KEY, '{}');
}

/**
 * Empties the blocks that quote one of these records, so that a forgotten text is not sent again. Returns the number of
 * blocks.
 */
export function emptyBlocks(rows: Statements, isForgotten: IsQuoted): number {
  return changeBlocks(rows, isForgotten, (row) => ({ ...row, block: '' }));
}

/** Keeps blocks that quote one of these records out of new conversations. It sets their time to 0, which is too old. */
export function retireBlocks(rows: Statements, isRetired: IsQuoted): number {
  return changeBlocks(rows, isRetired, (row) => ({ ...row, at: 0 }));
}

/**
 * Changes all blocks that quote one of these records. The transaction that reads the last rows also writes the row
 * FORGOTTEN_KEY. So every block with a lower number is changed here, and a process that records a block later reads the
 * row first, and then records no forgotten text.
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
        rows.run(REPLACE, key, valueOf(change(row)));
        changed += 1;
      }
      last = some.at(-1)?.n ?? last;
      if (some.length < FORGET_ROWS) noteForgotten(rows);
      return some.length;
    });
    if (read < FORGET_ROWS) return changed;
  }
}

/** Returns the references of all records that blocks quote, by space. */
export function placedRecords(rows: Statements): PlacedRecords {
  const placed = new Map<string, Set<string>>();
  for (let last = 0; ;) {
    const some = quotingRows(rows, last);
    for (const { ref, space } of some.flatMap(({ key, value }) =>
      quotedIn(rowIn(key, value) ?? { block: '' }),
    )) {
      placed.set(space, (placed.get(space) ?? new Set()).add(ref));
    }
    last = some.at(-1)?.n ?? last;
    if (some.length < FORGET_ROWS) return placed;
  }
}

export type PlacedRecords = ReadonlyMap<string, ReadonlySet<string>>;

type IsQuoted = (record: QuotedRecord) => boolean;

/**
 * Returns the next FORGET_ROWS rows whose value has `m_` at the beginning of a line, as a block that quotes records
 * has. In JSON a line end is the two characters `\n`.
 */
function quotingRows(rows: Statements, last: number): readonly StoredRow[] {
  return rows.all<StoredRow>(
    "SELECT n, key, value FROM ledger WHERE n > ? AND instr(value, '\\nm_') ORDER BY n LIMIT ?",
    last,
    FORGET_ROWS,
  );
}

/** Deletes the oldest rows above the bound. */
export function pruneLedger(rows: Statements): void {
  rows.run(
    'DELETE FROM ledger WHERE n <= (SELECT n FROM ledger ORDER BY n DESC LIMIT 1 OFFSET ?)',
    ROWS_MAX,
  );
}
