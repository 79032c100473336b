import { createRequire } from 'node:module';

/**
 * Loads a driver of SQLite with the API of node:sqlite: Node's own if its SQLite is new enough, else a package. The
 * rest of svc uses only what both drivers have.
 */

export type SqlValue = string | number | Uint8Array | null;

interface Statement {
  run(...values: SqlValue[]): { readonly changes: number | bigint };
  get(...values: SqlValue[]): unknown;
  all(...values: SqlValue[]): unknown[];
}

export interface Connection {
  exec(sql: string): void;
  prepare(sql: string): Statement;
  close(): void;
}

export interface Driver {
  readonly name: 'node:sqlite' | '@photostructure/sqlite';
  open(path: string, options?: { readonly readOnly?: boolean }): Connection;
}

/**
 * The first SQLite without the WAL-reset bug: with versions 3.7.0 to 3.51.2, two processes that write and checkpoint
 * the same database in WAL mode can corrupt it.
 */
export const SAFE_WAL_VERSION = '3.51.3';

interface SqliteModule {
  readonly DatabaseSync: new (path: string, options: { readonly readOnly?: boolean }) => Connection;
}

/** Returns Node's own driver if its SQLite is new enough, else the package's. If that fails to load, Node's old one. */
export function loadDriver(): Driver {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Node 20's types do not know it.
  const builtin = process.getBuiltinModule?.('node:sqlite') as SqliteModule | undefined;
  if (builtin !== undefined && isAtLeast(process.versions['sqlite'] ?? '0', SAFE_WAL_VERSION)) {
    return driverOf('node:sqlite', builtin);
  }
  try {
    const require = createRequire(import.meta.url);
    // Not import(), which takes 7 ms to find the names that a CommonJS module exports.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const module = require('@photostructure/sqlite') as SqliteModule;
    return driverOf('@photostructure/sqlite', module);
  } catch (error) {
    if (builtin !== undefined) return driverOf('node:sqlite', builtin);
    throw error;
  }
}

export function isAtLeast(version: string, wanted: string): boolean {
  const have = version.split('.').map(Number);
  for (const [place, number] of wanted.split('.').map(Number).entries()) {
    const difference = (have[place] ?? 0) - number;
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function driverOf(name: Driver['name'], module: SqliteModule): Driver {
  return { name, open: (path, options = {}) => new module.DatabaseSync(path, options) };
}

/** Returns SQLite's primary result code; 0 if the error has none that svc can find. */
export function sqliteCode(error: unknown): number {
  if (!(error instanceof Error)) return 0;
  const code: unknown = Reflect.get(error, 'errcode');
  if (typeof code === 'number') return code & 0xff;
  if (Reflect.get(error, 'code') !== 'ERR_SQLITE_ERROR') return 0;
  return WORDS.find(([words]) => error.message.startsWith(words))?.[1] ?? 0;
}

/**
 * SQLite's texts for its codes (sqlite3ErrStr in sqlite3.c). Errors of `all()` in `@photostructure/sqlite` 1.2.1
 * contain only the text and not the code.
 */
const WORDS: readonly (readonly [string, number])[] = [
  ['database is locked', 5],
  ['database table is locked', 6],
  ['out of memory', 7],
  ['attempt to write a readonly database', 8],
  ['disk I/O error', 10],
  ['database disk image is malformed', 11],
  ['fts5: corrupt', 11],
  ['database or disk is full', 13],
  ['unable to open database file', 14],
  ['locking protocol', 15],
  ['file is not a database', 26],
];

/** Says whether the error means that the file is damaged, or is no database. */
export function isDamage(error: unknown): boolean {
  const code = sqliteCode(error);
  return code === 11 || code === 26;
}

/** Says whether another connection holds a lock, so that a retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = sqliteCode(error);
  // 5 is SQLITE_BUSY. 15 is SQLITE_PROTOCOL: other processes kept changing the log while this one began to read it.
  return code === 5 || code === 15;
}

/** Blocks the thread for 20 ms, the time that another process needs to create a new database. */
export function waitForOpener(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
}

/** Texts for the primary result codes that users may meet: https://www.sqlite.org/rescode.html */
const FAILURES: Readonly<Record<number, string>> = {
  3: 'cannot be opened: its owner or mode forbids it',
  5: 'is locked by another program',
  6: 'is locked by another program',
  7: 'cannot be used: this machine is out of memory',
  8: 'cannot be written: its owner, its mode or its disk forbids it',
  10: 'could not be read or written: its disk reports an error',
  11: 'is damaged',
  13: 'could not grow: its disk is full',
  14: 'cannot be opened: its folder is missing or not writable for you',
  23: 'cannot be opened: its owner or mode forbids it',
  26: 'is damaged, or not a database',
};

/** Returns a text for users about a failure of a file. It continues a sentence such as "The memory's file …". */
export function failureText(error: unknown): string {
  const known = FAILURES[sqliteCode(error)];
  if (known !== undefined) return known;
  const system: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  // Show the system's code, which users can look up, but no code of Node or a driver.
  const isSystem = typeof system === 'string' && /^E[A-Z0-9]+$/.test(system);
  return isSystem ? `cannot be used (${system})` : 'cannot be used';
}

/**
 * How long emptyLog() waits for readers: longer than a recall reads (20 ms), and shorter than a write to the ledger
 * waits for the lock (250 ms).
 */
const READER_MS = 100;

/** Runs SQL on a connection, and caches its prepared statements. */
export class Statements {
  readonly #connection: Connection;
  readonly #statements = new Map<string, Statement>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Returns all rows. The caller must name a type that matches the columns of the SELECT. */
  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return this.#statement(sql).all(...values.map(storable)) as Row[];
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  get<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return this.#statement(sql).get(...values.map(storable)) as Row | undefined;
  }

  /** Runs a statement. Returns the number of changed rows. */
  run(sql: string, ...values: SqlValue[]): number {
    return Number(this.#statement(sql).run(...values.map(storable)).changes);
  }

  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  /** Returns the value of a pragma, or of a SELECT with one value. */
  value(sql: string): unknown {
    return Object.values(this.#connection.prepare(sql).get() ?? {})[0];
  }

  /**
   * Runs a transaction. It takes the write lock at once: SQLite may refuse to turn a reading transaction into a writing
   * one.
   */
  transaction<Result>(work: () => Result): Result {
    this.#statement('BEGIN IMMEDIATE').run();
    try {
      const result = work();
      this.#statement('COMMIT').run();
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  /**
   * Moves the write-ahead log into the file and empties it. Returns false if another connection still reads an earlier
   * state. No connection can write while this waits for such a reader.
   */
  emptyLog(): boolean {
    // Do most of the checkpoint first, in a mode in which other connections may write.
    this.value('PRAGMA wal_checkpoint(PASSIVE)');
    return this.waitingAtMost(READER_MS, () => this.value('PRAGMA wal_checkpoint(TRUNCATE)') === 0);
  }

  /** Runs `work`, whose statements wait for a lock for at most `ms` milliseconds. */
  waitingAtMost<Result>(ms: number, work: () => Result): Result {
    const usualMs = Number(this.value('PRAGMA busy_timeout'));
    this.exec(`PRAGMA busy_timeout = ${ms}`);
    try {
      return work();
    } finally {
      this.exec(`PRAGMA busy_timeout = ${usualMs}`);
    }
  }

  close(): void {
    this.#statements.clear();
    this.#connection.close();
  }

  /** Rolls back, unless SQLite has done so itself, as after a full disk. */
  #rollBack(): void {
    try {
      this.#connection.exec('ROLLBACK');
    } catch {
      // No transaction is open. The caller throws the earlier error.
    }
  }

  #statement(sql: string): Statement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }
}

/** Returns a value that a driver stores whole: the package ends a text at its first NUL. */
function storable(value: SqlValue): SqlValue {
  return typeof value === 'string' ? withoutNul(value) : value;
}

/** Replaces NUL by U+FFFD. */
export function withoutNul(text: string): string {
  return text.replaceAll('\0', '\ufffd');
}

/** Collects the conditions of a query, which AND joins, and the values for their question marks, in order. */
export class Conditions {
  readonly values: (string | number)[] = [];
  readonly #all: string[] = [];

  require(condition: string): void {
    this.#all.push(condition);
  }

  /** Adds a condition with one question mark. Does nothing if the value is undefined. */
  add(condition: string, value: string | number | undefined): void {
    if (value === undefined) return;
    this.require(condition);
    this.values.push(value);
  }

  /** Returns the WHERE clause; '' if there are no conditions. */
  get where(): string {
    return this.#all.length === 0 ? '' : `WHERE ${this.#all.join(' AND ')}`;
  }
}

export interface StoredText {
  readonly text: Uint8Array;
  readonly is_utf16: number;
}

/** Encodes a text as bytes. textOf() returns exactly the same text. */
export function bytesOf(text: string): StoredText {
  // JSON may contain half a surrogate pair, which UTF-8 cannot encode. Such a text is stored as UTF-16.
  const isUtf16 = /\p{Surrogate}/u.test(text);
  return { text: Buffer.from(text, isUtf16 ? 'utf16le' : 'utf8'), is_utf16: isUtf16 ? 1 : 0 };
}

export function textOf({ text, is_utf16: isUtf16 }: StoredText): string {
  return Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString(
    isUtf16 === 1 ? 'utf16le' : 'utf8',
  );
}

/** A row that has its text as bytes. */
export type Stored<Row extends { readonly text: string }> = Omit<Row, 'text'> & StoredText;

/** Returns the row with its text decoded. */
export function decoded<Row extends StoredText>({ text, is_utf16, ...row }: Row) {
  return { ...row, text: textOf({ text, is_utf16 }) };
}

const DAY_MS = 24 * 3600 * 1000;

/**
 * Returns a time from which pruning counts ages without the clock: the end of the third newest day (UTC) in a column of
 * times, in milliseconds since 1970; 0 if the column has fewer than three days. A wrong clock may have written the two
 * newest days.
 */
export function sureTime(
  rows: Pick<Statements, 'get'>,
  { table, column }: { readonly table: string; readonly column: string },
): number {
  const third = rows.get<{ readonly day: number }>(
    `SELECT DISTINCT ${column} / ${DAY_MS} AS day FROM ${table} ORDER BY day DESC LIMIT 1 OFFSET 2`,
  );
  return third === undefined ? 0 : (third.day + 1) * DAY_MS;
}
