import { existsSync } from 'node:fs';
import { setAside, stateFile } from '../files/database-file.ts';
import { ensurePrivateFile, makePrivateFolder } from '../files/private-files.ts';
import {
  type Driver,
  isAtLeast,
  SAFE_WAL_VERSION,
  isBusy,
  isDamage,
  Statements,
  waitForOpener,
} from '../store/driver.ts';
import type { Descriptors } from '../store/descriptors.ts';
import { identityOf, OpenedFile, removeStaleLogs } from '../store/opened-file.ts';
import { createTables } from '../store/schema.ts';

/**
 * A connection to `state.db`, the file with ledger, outbox and request log. The event loop reads and writes it by
 * single statements and short transactions. The store's thread has a connection of its own, for everything that takes
 * longer. Once the file exists, only SQLite and `Descriptors` may open it: closing another descriptor would drop
 * SQLite's locks in this process.
 */

export const STATE_VERSION = 1;

// A change of a ledger row deletes it and inserts it again, so it gets a new number `n`. A process that reads all rows
// above the last number that it has seen knows all changes by any process, except pruning. AUTOINCREMENT never reuses a
// number. That matters in the outbox too, where two processes may deliver the same row and then delete the row by its
// number.
const SCHEMA = `
CREATE TABLE ledger (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  key TEXT NOT NULL UNIQUE,
  value TEXT NOT NULL
);
CREATE TABLE outbox (
  n INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT NOT NULL,
  record TEXT NOT NULL,
  at INTEGER NOT NULL
);
CREATE INDEX outbox_by_target ON outbox(target, n);
CREATE TABLE requests (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  at INTEGER NOT NULL,
  row TEXT NOT NULL
);
CREATE INDEX requests_by_id ON requests(id);
CREATE INDEX requests_by_conversation ON requests(row ->> '$.conversation', number);
CREATE INDEX requests_by_time ON requests(at);
CREATE TABLE quota (
  n INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  row TEXT NOT NULL
);
PRAGMA user_version = ${STATE_VERSION};
`;

// For a memory service: see memory-client/acknowledgements.ts. A text is acknowledged in one generation of its space
// only. The row of a space has the newest generation whose change was handled. If a process ends before it has handled
// a change, the next process notices the change again. The owner of an outbox is a hash of the service's address and of
// the tenant that the key belongs to.
export const SERVICE_TABLES = `
CREATE TABLE acknowledged (
  n INTEGER PRIMARY KEY,
  target TEXT NOT NULL,
  space TEXT NOT NULL,
  text TEXT NOT NULL,
  generation TEXT NOT NULL,
  digest TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  UNIQUE (target, space, text)
);
CREATE TABLE acknowledged_spaces (
  target TEXT NOT NULL,
  space TEXT NOT NULL,
  generation TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (target, space)
);
CREATE TABLE outbox_owners (
  target TEXT PRIMARY KEY,
  owner TEXT NOT NULL
);
`;

/**
 * How long the first attempt to open the file waits, with retries. If two processes start together and both switch a
 * new file to WAL mode, SQLite refuses one of them without waiting. Later attempts wait for `busyMs`: on the event loop
 * not at all, because that would block all streams.
 */
const OPEN_MS = 1000;
/** After a failure to open the file, calls fail with the same error for this time. */
const REOPEN_MS = 1000;

export interface StateFileOptions {
  readonly folder: string;
  readonly driver: () => Driver;
  readonly descriptors: Descriptors;
  /** How long a statement waits for a lock, in milliseconds; 0 on the event loop. */
  readonly busyMs: number;
  /** How long the first attempt to open the file waits, in milliseconds; undefined: OPEN_MS. */
  readonly openMs?: number | undefined;
  /** Bound on SQLite's page cache, in KiB. */
  readonly cacheKib: number;
  /** True: create a missing file, and replace a damaged one. Only the event loop's connection does so. */
  readonly creates: boolean;
  report(line: string): void;
}

interface Opened {
  readonly rows: Statements;
  readonly file: OpenedFile;
}

export class StateFile {
  readonly path: string;
  readonly #options: StateFileOptions;
  #opened: Opened | undefined;
  #failedAt = -Infinity;
  #failure: Error | undefined;
  /** Rows copied from a file that was deleted, replaced or damaged while it was open, for the next file. */
  #carried: Carried | undefined;
  /** The number of times a file was opened. It tells a caller whether the file is still the one that it has read. */
  #opens = 0;
  #hasTried = false;
  #isClosed = false;

  constructor(options: StateFileOptions) {
    this.#options = options;
    this.path = stateFile(options.folder);
  }

  get opens(): number {
    return this.#opens;
  }

  get isThere(): boolean {
    return existsSync(this.path);
  }

  /**
   * Runs `work` on the file at the path. Opens that file if it is not the one that is open, because SQLite reports
   * success even for a commit into a deleted file. Throws errors of SQLite and the file system.
   */
  use<Result>(work: (rows: Statements) => Result): Result {
    return this.#on(this.#look(), work);
  }

  /** Runs `work` like use(), but does not check whether the open file is still at the path: that takes 8 us. */
  ask<Result>(work: (rows: Statements) => Result): Result {
    return this.#on(this.#opened ?? this.#look(), work);
  }

  canBeUsed(): boolean {
    try {
      this.use(() => undefined);
      return true;
    } catch {
      return false;
    }
  }

  close(): void {
    this.#isClosed = true;
    const opened = this.#opened;
    this.#opened = undefined;
    if (opened !== undefined) this.#leave(opened);
  }

  #on<Result>({ rows }: Opened, work: (rows: Statements) => Result): Result {
    try {
      return work(rows);
    } catch (error) {
      if (isDamage(error)) this.#setAside();
      throw error;
    }
  }

  #look(): Opened {
    const opened = this.#opened;
    if (opened !== undefined) {
      const { file, rows } = opened;
      const state = file.look();
      // SQLite does not notice a write by another program, so make it drop its cached pages.
      if (state === 'written') rows.exec('PRAGMA shrink_memory');
      if (state === 'same' || state === 'written') return opened;
      file.detachOverwritten(state);
      this.#opened = undefined;
      // Nothing is carried over from an overwritten file, because only some of its earlier pages are left, in the
      // cache.
      if (state === 'replaced' && !file.isAtPath()) this.#carried = carriedFrom(rows);
      this.#leave(opened);
    }
    return this.#open();
  }

  /** Moves the write-ahead log into the open file, which may be deleted or replaced, and closes it. */
  #leave({ rows }: Opened): void {
    try {
      rows.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Ignore it: the commits stay in the log, as after a kill of the process.
    }
    closeQuietly(rows);
  }

  #open(): Opened {
    if (this.#isClosed) throw new Error('The state is closed.');
    const isRecent = performance.now() - this.#failedAt < REOPEN_MS;
    if (this.#failure !== undefined && isRecent) throw this.#failure;
    try {
      const opened = this.#openWhole();
      this.#carryOver(opened.rows);
      this.#opened = opened;
      this.#opens += 1;
      this.#failure = undefined;
      return opened;
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error('unknown', { cause: error });
      this.#failedAt = performance.now();
      throw error;
    }
  }

  #carryOver(rows: Statements): void {
    if (this.#carried === undefined || !this.#options.creates) return;
    try {
      carry(rows, this.#carried);
      this.#carried = undefined;
    } catch (error) {
      closeQuietly(rows);
      throw error;
    }
  }

  #openWhole(): Opened {
    try {
      return this.#openPatiently();
    } catch (error) {
      if (!isDamage(error)) throw error;
      this.#setAside();
      return this.#openPatiently();
    }
  }

  #openPatiently(): Opened {
    const waitMs = this.#hasTried ? this.#options.busyMs : (this.#options.openMs ?? OPEN_MS);
    this.#hasTried = true;
    const end = performance.now() + waitMs;
    for (;;) {
      try {
        return this.#openOnce(Math.max(0, Math.ceil(end - performance.now())));
      } catch (error) {
        if (!isBusy(error) || performance.now() >= end) throw error;
        waitForOpener();
      }
    }
  }

  #openOnce(waitMs: number): Opened {
    const { folder, driver, descriptors, creates, busyMs, cacheKib } = this.#options;
    if (creates) {
      makePrivateFolder(folder);
      removeStaleLogs(this.path);
      ensurePrivateFile(this.path);
    } else if (!existsSync(this.path)) {
      throw new Error('There is no state yet.');
    }
    const identity = identityOf(this.path);
    const rows = new Statements(driver().open(this.path));
    try {
      rows.exec(`PRAGMA busy_timeout = ${waitMs}`);
      const isSafe = isAtLeast(String(rows.value('SELECT sqlite_version()')), SAFE_WAL_VERSION);
      rows.value(`PRAGMA journal_mode = ${isSafe ? 'WAL' : 'DELETE'}`);
      // NORMAL syncs only at a checkpoint; StateWriter syncs the log SYNC_MS after a write. With OFF the log's header
      // would not be synced, and a power cut could damage the file.
      rows.exec('PRAGMA synchronous = NORMAL');
      // Usually the store's thread runs the checkpoints (StateWriter), because one may block the event loop for 46 ms.
      rows.exec('PRAGMA wal_autocheckpoint = 0');
      // On macOS a checkpoint must use a full sync, so that the file is on disk before the log restarts.
      rows.exec('PRAGMA checkpoint_fullfsync = ON');
      rows.exec('PRAGMA secure_delete = ON');
      rows.exec('PRAGMA mmap_size = 0');
      rows.exec(`PRAGMA cache_size = -${cacheKib}`);
      rows.exec('PRAGMA journal_size_limit = 4194304');
      createTables(rows, { schema: SCHEMA + SERVICE_TABLES, version: STATE_VERSION });
      rows.exec(`PRAGMA busy_timeout = ${busyMs}`);
      return { rows, file: new OpenedFile(this.path, descriptors, identity) };
    } catch (error) {
      closeQuietly(rows);
      throw error;
    }
  }

  /** Closes a damaged file. With `creates` also renames it, so that the next call creates a new one. */
  #setAside(): void {
    const opened = this.#opened;
    this.#opened = undefined;
    if (opened !== undefined) this.#carried = carriedFrom(opened.rows);
    closeQuietly(opened?.rows);
    // Another process or thread may have renamed the file already.
    const isOurs = opened === undefined || opened.file.isAtPath();
    if (!isOurs || !this.#options.creates) return;
    const aside = setAside(this.path, Date.now());
    this.#options.report(
      `The file of svc's state was damaged. svc kept it as ${aside} and created a new one.`,
    );
  }
}

interface Carried {
  readonly outbox: readonly { readonly target: string; readonly record: string; at: number }[];
  readonly ledger: readonly { readonly key: string; readonly value: string }[];
}

/** Bound on ledger rows that are copied into a new file: the newest ones, which current conversations need. */
const CARRIED_ROWS_MAX = 5000;

/** Reads the outbox and the newest ledger rows of an open file that was deleted, replaced or damaged. */
function carriedFrom(rows: Statements): Carried {
  return {
    outbox: readable(() => rows.all('SELECT target, record, at FROM outbox ORDER BY n')),
    ledger: readable(() =>
      rows.all('SELECT key, value FROM ledger ORDER BY n DESC LIMIT ?', CARRIED_ROWS_MAX),
    ),
  };
}

/** Returns the rows; none if they cannot be read. */
function readable<Row>(read: () => readonly Row[]): readonly Row[] {
  try {
    return read();
  } catch {
    return [];
  }
}

/** Copies the rows into a new file. A ledger row that another process has written there already stays. */
function carry(rows: Statements, { outbox, ledger }: Carried): void {
  rows.transaction(() => {
    for (const { target, record, at } of outbox) {
      rows.run('INSERT INTO outbox (target, record, at) VALUES (?, ?, ?)', target, record, at);
    }
    for (const { key, value } of ledger.toReversed()) {
      rows.run('INSERT OR IGNORE INTO ledger (key, value) VALUES (?, ?)', key, value);
    }
  });
}

function closeQuietly(rows: Statements | undefined): void {
  try {
    rows?.close();
  } catch {
    // Ignore it: all commits are in the file or its log.
  }
}
