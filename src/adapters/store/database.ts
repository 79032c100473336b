import { existsSync, lstatSync, renameSync } from 'node:fs';
import { MemoryError } from '../../core/errors.ts';
import { databaseFile } from '../files/database-file.ts';
import { ensurePrivateFile, makePrivateFolder } from '../files/private-files.ts';
import {
  type Connection,
  type Driver,
  isAtLeast,
  SAFE_WAL_VERSION,
  type SqlValue,
  isBusy,
  isDamage,
  Statements,
} from './driver.ts';
import type { Descriptors } from './descriptors.ts';
import { type FileState, isBeingWritten, OpenedFile, removeStaleLogs } from './opened-file.ts';
import { createTables } from './schema.ts';
import { markReplaced, replacedAt } from '../files/marks.ts';
import { isPrivate } from '../files/private-folder.ts';

/**
 * Opens the single SQLite file with the settings that durability and privacy need. A broken file is renamed and a
 * new one begun; it is never deleted or repaired.
 */

/**
 * Matches statements after which a text that was read may be deleted or changed. The excluded tables hold no texts,
 * and nearly every write deletes rows from them. A text that is said again only gets a new time. A space increments
 * its counter when a purge begins.
 */
const TAKES_TEXTS =
  /^\s*(?:DELETE(?! FROM (?:signals|ledger|tenant_ledger|requests)\b)|UPDATE (?:outputs|records(?! SET at = \?)|tenant_spaces SET counter))\b/i;
/** Largest file that PRAGMA quick_check reads when opening: 16 MiB take about 50 ms; larger files are trusted. */
const CHECKED_BYTES_MAX = 16 * 1024 * 1024;
/**
 * How long a connection waits for a lock: other processes hold the write lock for a short transaction, which takes
 * seconds on a bad disk.
 */
const BUSY_MS = 5000;
/** Attempts to open the file, one second in all; creating the tables takes about 20 ms. */
const OPEN_ATTEMPTS = 50;
/** Attempts while another program writes the file, ten seconds in all: enough to copy a backup of some gigabytes. */
const COPY_ATTEMPTS = 500;
const OPEN_RETRY_MS = 20;

export interface OpenOptions {
  readonly folder: string;
  readonly driver: Driver;
  readonly descriptors: Descriptors;
  readonly busyMs?: number;
  readonly isTrusted?: boolean;
  /** Milliseconds since 1970, for the new name of a broken file. */
  readonly now: number;
  report(line: string): void;
}

export class Database {
  readonly #rows: Statements;
  #deletions = 0;
  /** Counts writes to the file itself, by a checkpoint or another program. */
  #writings = 0;
  readonly #file: OpenedFile;
  /** Milliseconds since 1970. */
  readonly openedAt = Date.now();
  readonly sqliteVersion: string;
  readonly journalMode: string;

  /** `path` is the path of the file that the connection has opened. */
  constructor(
    connection: Connection,
    path: string,
    { descriptors, busyMs = BUSY_MS }: Pick<OpenOptions, 'descriptors' | 'busyMs'>,
  ) {
    this.#rows = new Statements(connection);
    this.sqliteVersion = String(this.#rows.value('SELECT sqlite_version()'));
    // Set it explicitly, because SQLite may be compiled with a WAL_SYNCHRONOUS of NORMAL.
    const mode = isAtLeast(this.sqliteVersion, SAFE_WAL_VERSION) ? 'WAL' : 'DELETE';
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`);
    this.journalMode = String(this.#rows.value(`PRAGMA journal_mode = ${mode}`));
    connection.exec('PRAGMA synchronous = FULL');
    connection.exec('PRAGMA secure_delete = ON');
    connection.exec('PRAGMA mmap_size = 0');
    connection.exec('PRAGMA foreign_keys = ON');
    // Without this, a row that INSERT OR REPLACE deletes is not counted as removed.
    connection.exec('PRAGMA recursive_triggers = ON');
    // A negative value is in kibibytes. 16 MiB hold the index pages of 100,000 passages.
    connection.exec('PRAGMA cache_size = -16384');
    // After a checkpoint, a larger write-ahead log is shortened to this size.
    connection.exec('PRAGMA journal_size_limit = 4194304');
    this.#file = new OpenedFile(path, descriptors);
  }

  /**
   * Says whether the opened files are still those at the path. After any write to the file itself SQLite reads its
   * pages again, because it does not notice other programs' writes.
   */
  look(): FileState {
    const state = this.#file.look();
    if (state !== 'written') return state;
    this.#writings += 1;
    this.#rows.exec('PRAGMA shrink_memory');
    return state;
  }

  /** See OpenedFile.detach. Close the connection afterwards. */
  detach(): boolean {
    return this.#file.detach();
  }

  checkpoint(): void {
    this.#rows.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  emptyLog(): boolean {
    return this.#rows.emptyLog();
  }

  /** For a file that was moved or deleted: writes its log into it, and removes the logs at the path. */
  leaveMoved(): void {
    try {
      this.checkpoint();
    } catch {
      // The disk is full or missing. The file is as intact as after a kill.
    }
    this.#file.removeLogs();
  }

  isAtPath(): boolean {
    return this.#file.isAtPath();
  }

  all<Row>(sql: string, ...values: SqlValue[]): Row[] {
    return this.#rows.all<Row>(sql, ...values);
  }

  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters
  get<Row>(sql: string, ...values: SqlValue[]): Row | undefined {
    return this.#rows.get<Row>(sql, ...values);
  }

  run(sql: string, ...values: SqlValue[]): number {
    const changes = this.#rows.run(sql, ...values);
    if (changes > 0 && TAKES_TEXTS.test(sql)) this.#deletions += 1;
    return changes;
  }

  exec(sql: string): void {
    this.#rows.exec(sql);
  }

  /**
   * Returns a value that changes as soon as a text that was read may have been deleted: after each commit of another
   * connection (when SQLite drops its cached pages too), after each deletion by this one, and after each write to
   * the file that `look` saw.
   */
  generation(): string {
    const commits = this.get<{ data_version: number }>('PRAGMA data_version')?.data_version ?? 0;
    return `${commits} ${this.#writings} ${this.#deletions}`;
  }

  /** Runs `work` in a transaction: all or nothing, on disk when it returns. */
  transaction<Result>(work: () => Result): Result {
    return this.#rows.transaction(work);
  }

  /**
   * Runs a transaction that is atomic and survives a kill of the process, but not a power cut. For data that may be
   * lost: a sync takes milliseconds, during which no recall is answered.
   */
  unsyncedTransaction(work: () => void): void {
    this.#rows.exec('PRAGMA synchronous = NORMAL');
    try {
      this.transaction(work);
    } finally {
      this.#rows.exec('PRAGMA synchronous = FULL');
    }
  }

  /** Runs reads on one snapshot, whatever other connections write meanwhile. */
  snapshot<Result>(read: () => Result): Result {
    this.#rows.exec('BEGIN');
    try {
      return read();
    } finally {
      this.#rows.exec('COMMIT');
    }
  }

  close(): void {
    this.#rows.close();
  }
}

/** Opens the database. Throws errors of the file system and SQLite, but not for a broken file. */
export function openDatabase(options: OpenOptions): Database {
  makePrivateFolder(options.folder);
  try {
    return openPatiently(options);
  } catch (error) {
    if (!isCorruption(error)) throw error;
  }
  return openPatiently(options);
}

export function isCorruption(error: unknown): boolean {
  return isDamage(error) || error instanceof CheckFailedError;
}

class CheckFailedError extends Error {
  override readonly name = 'CheckFailedError';
}

const BEING_WRITTEN = "Another program is writing to the memory's file.";

export function beingWritten(): MemoryError {
  return new MemoryError('unavailable', BEING_WRITTEN);
}

/** Thrown if the file is broken and another program has just written to it, so it may be half of a copy. */
class BeingWrittenError extends MemoryError {
  /**
   * Closes the connection. Call it after the next attempt to open the file: SQLite deletes the log on closing, but
   * that attempt may rename the broken file, and must rename its log too.
   */
  readonly close: () => void;

  constructor(close: () => void) {
    super('unavailable', BEING_WRITTEN);
    this.close = close;
  }
}

// Opens with retries. Switching a new file to WAL needs it exclusively, and SQLite does not wait for that, so two
// processes that start together must try again.
function openPatiently(options: OpenOptions): Database {
  let earlier: BeingWrittenError | undefined;
  for (let attempt = 1; ; attempt += 1) {
    try {
      const database = openChecked(options);
      earlier?.close();
      return database;
    } catch (error) {
      earlier?.close();
      earlier = error instanceof BeingWrittenError ? error : undefined;
      // A caller that gives `busyMs` has waited for that time already, so do not try again.
      const mayWait = options.busyMs === undefined;
      const isMomentary = mayWait && (earlier !== undefined || isBusy(error));
      if (!isMomentary || attempt >= (earlier === undefined ? OPEN_ATTEMPTS : COPY_ATTEMPTS)) {
        earlier?.close();
        throw error;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, OPEN_RETRY_MS);
    }
  }
}

function openChecked(options: OpenOptions): Database {
  const path = databaseFile(options.folder);
  removeStaleLogs(path);
  const { ino, size } = ensurePrivateFile(path);
  const isAtPath = (): boolean => existsSync(path) && lstatSync(path).ino === ino;
  const connection = options.driver.open(path);
  let close = (): void => connection.close();
  try {
    const database = new Database(connection, path, options);
    close = () => database.close();
    createTables(connection);
    if (options.isTrusted !== true && size <= CHECKED_BYTES_MAX) check(database);
    return database;
  } catch (error) {
    const isBroken = isCorruption(error);
    if (isBroken && isBeingWritten(path)) throw new BeingWrittenError(close);
    abandon({ isBroken, isAtPath, close }, options);
    throw error;
  }
}

function check(database: Database): void {
  if (!isWhole(database)) throw new CheckFailedError('the integrity check failed');
}

/** Reads the whole file, as long as that takes. */
export function isWhole(database: Database): boolean {
  const row = database.get<{ quick_check: string }>('PRAGMA quick_check(1)');
  return row?.quick_check === 'ok';
}

interface Abandoned {
  readonly isBroken: boolean;
  /** Returns false if another process has renamed the broken file: the path then has a new file, which must stay. */
  isAtPath(): boolean;
  close(): void;
}

/**
 * Closes a connection. A broken file is renamed first, because SQLite deletes the write-ahead log on closing, and
 * the log may hold what the broken file lost.
 */
export function abandon(given: Abandoned, options: OpenOptions): void {
  try {
    if (given.isBroken && given.isAtPath()) setAside(options);
  } finally {
    given.close();
  }
}

function setAside(options: OpenOptions): void {
  const path = databaseFile(options.folder);
  const aside = `${path}.corrupt-${new Date(options.now).toISOString().replaceAll(':', '')}`;
  for (const suffix of ['', '-wal', '-shm']) {
    if (existsSync(path + suffix)) renameSync(path + suffix, aside + suffix);
  }
  options.report(`The memory's file was damaged. svc kept it as ${aside} and created a new one.`);
}

/**
 * Thrown if the database was deleted or replaced while it was open. Nothing that this connection has read is valid.
 */
export class FileReplacedError extends Error {
  override readonly name = 'FileReplacedError';
}

/**
 * Checks the files. Throws MemoryError while another program writes the file, and FileReplacedError if the files at
 * the path are not those that were opened. Then the thread must end, because SQLite releases a file only with its
 * last statement.
 */
export function leaveReplaced(
  database: Database,
  options: { readonly folder: string; report(line: string): void },
): void {
  const state = database.look();
  if (state === 'same' || state === 'written') return;
  if (state === 'overwriting' || (state === 'overwritten' && !database.detach())) {
    throw beingWritten();
  }
  if (state === 'unlogged') database.checkpoint();
  if (state === 'replaced' && !database.isAtPath()) database.leaveMoved();
  const { folder } = options;
  const file = databaseFile(folder);
  // Another connection may have found this first; report it once.
  if (replacedAt(folder) < database.openedAt) {
    options.report(
      `The memory's file ${file} was deleted or replaced while svc ran. svc continues with the new file.`,
    );
    tellOthers(folder);
  }
  throw new FileReplacedError(file);
}

/** Tells other processes on the folder, and a user who runs `svc status` or `svc doctor`. */
function tellOthers(folder: string): void {
  try {
    // The folder was svc's own a moment ago. A folder with open rights in its place is refused when it is opened.
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    makePrivateFolder(folder, { inside: stat !== undefined && isPrivate(stat.mode) });
    markReplaced(folder);
  } catch {
    // If the folder cannot be made, opening the memory will report it.
  }
}
