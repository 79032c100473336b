import { existsSync, lstatSync, statSync } from 'node:fs';
import { MemoryError } from '../../core/errors.ts';
import { databaseFile, setAside } from '../files/database-file.ts';
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
  waitForOpener,
} from './driver.ts';
import type { Descriptors } from './descriptors.ts';
import {
  BEING_WRITTEN,
  type FileState,
  isBeingWritten,
  OpenedFile,
  removeStaleLogs,
} from './opened-file.ts';
import { createTables } from './schema.ts';
import { markReplaced, replacedAt } from '../files/marks.ts';
import { isPrivate } from '../files/private-folder.ts';

/**
 * Opens the SQLite file of a store, with the settings that durability and privacy need. A damaged file is renamed and
 * replaced by a new one; it is never deleted or repaired.
 */

/** Size of the largest file whose consistency is checked when it is opened, which takes about 50 ms. */
const CHECKED_BYTES_MAX = 16 * 1024 * 1024;
/** How long a connection waits for a lock. On a slow disk another process's transaction may take seconds. */
const BUSY_MS = 5000;
/**
 * Attempts to open the file while another process has it locked, with pauses of one second in all. The other process
 * needs 20 ms to create the tables.
 */
const OPEN_ATTEMPTS = 50;
/** Attempts while another program writes the file: ten seconds in all, enough to copy a backup of some gigabytes. */
const COPY_ATTEMPTS = 500;

export interface OpenOptions {
  readonly folder: string;
  readonly driver: Driver;
  readonly descriptors: Descriptors;
  /** How long a statement waits for a lock, in milliseconds; undefined: BUSY_MS. */
  readonly busyMs?: number;
  /** True: do not check the file when opening it. Damage is then found when it is used. */
  readonly isTrusted?: boolean;
  /** Milliseconds since 1970, for the new name of a damaged file. */
  readonly now: number;
  report(line: string): void;
}

export class Database {
  readonly #rows: Statements;
  /** Counts writes to the database file itself, by a checkpoint or another program. */
  #writings = 0;
  readonly #file: OpenedFile;
  /** The time of opening, in milliseconds since 1970. */
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
    const mode = isAtLeast(this.sqliteVersion, SAFE_WAL_VERSION) ? 'WAL' : 'DELETE';
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`);
    this.journalMode = String(this.#rows.value(`PRAGMA journal_mode = ${mode}`));
    // Set this explicitly: SQLite may be compiled with NORMAL as its default in WAL mode.
    connection.exec('PRAGMA synchronous = FULL');
    connection.exec('PRAGMA secure_delete = ON');
    connection.exec('PRAGMA mmap_size = 0');
    connection.exec('PRAGMA foreign_keys = ON');
    // Without this, INSERT OR REPLACE does not run the triggers that count deleted texts.
    connection.exec('PRAGMA recursive_triggers = ON');
    // 16 MiB hold the index pages of 100,000 passages. A negative value is in KiB.
    connection.exec('PRAGMA cache_size = -16384');
    // A checkpoint shortens a larger write-ahead log to this size.
    connection.exec('PRAGMA journal_size_limit = 4194304');
    this.#file = new OpenedFile(path, descriptors);
  }

  /**
   * Says whether the opened files are still those at the path; see FileState. After a write to the database file it
   * makes SQLite drop its cached pages, because SQLite does not notice writes by other programs.
   */
  look(): FileState {
    const state = this.#file.look();
    if (state !== 'written') return state;
    this.#writings += 1;
    this.#rows.exec('PRAGMA shrink_memory');
    return state;
  }

  /** See OpenedFile.detachOverwritten. */
  detachOverwritten(state: FileState): void {
    this.#file.detachOverwritten(state);
  }

  checkpoint(): void {
    this.#rows.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  emptyLog(): boolean {
    return this.#rows.emptyLog();
  }

  /** See Statements.waitingAtMost. */
  waitingAtMost<Result>(ms: number, work: () => Result): Result {
    return this.#rows.waitingAtMost(ms, work);
  }

  /** Leaves a file that was moved or deleted: writes its log into the moved file, and removes the log at the path. */
  leaveMoved(): void {
    try {
      this.checkpoint();
    } catch {
      // The disk is full or missing. The moved file may then lack the last commits.
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
    return this.#rows.run(sql, ...values);
  }

  exec(sql: string): void {
    this.#rows.exec(sql);
  }

  /**
   * Returns a value that changes as soon as a text that was read may have been deleted or changed. The table `removals`
   * counts deletions and changes by svc. look() counts writes to the file, because another program may have put another
   * table there.
   */
  generation(): string {
    const row = this.get<{ id: number; count: number }>('SELECT id, count FROM removals');
    return `${row?.id} ${row?.count} ${this.#writings}`;
  }

  /**
   * Runs `work` in a transaction: all or nothing. When transaction() returns, the changes are on disk, except in
   * unsyncedTransaction().
   */
  transaction<Result>(work: () => Result): Result {
    return this.#rows.transaction(work);
  }

  /**
   * Runs a transaction without a sync: it survives a kill of the process, but a power cut may lose it. A sync would
   * take milliseconds, in which no recall is answered.
   */
  unsyncedTransaction(work: () => void): void {
    this.#rows.exec('PRAGMA synchronous = NORMAL');
    try {
      this.transaction(work);
    } finally {
      this.#rows.exec('PRAGMA synchronous = FULL');
    }
  }

  close(): void {
    this.#rows.close();
  }
}

/**
 * Opens the database. A damaged file is renamed. Throws errors of the file system and SQLite, and MemoryError while
 * another program writes the file.
 */
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

/**
 * Thrown if the file is empty or looks damaged, and another program has just written to it: it may be an unfinished
 * copy.
 */
class BeingWrittenError extends MemoryError {
  /**
   * Closes the connection. Call it only after the next attempt to open the file. That attempt may rename a damaged file
   * with its write-ahead log, which SQLite deletes on closing.
   */
  readonly close: () => void;

  constructor(close: () => void) {
    super('unavailable', BEING_WRITTEN);
    this.close = close;
  }
}

/**
 * Opens the file, with retries. If two processes start together and both switch a new file to WAL mode, SQLite refuses
 * one of them without waiting.
 */
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
      // A caller that sets `busyMs` wants to wait no longer than that.
      const mayWait = options.busyMs === undefined;
      const isMomentary = mayWait && (earlier !== undefined || isBusy(error));
      if (!isMomentary || attempt >= (earlier === undefined ? OPEN_ATTEMPTS : COPY_ATTEMPTS)) {
        earlier?.close();
        throw error;
      }
      waitForOpener();
    }
  }
}

function openChecked(options: OpenOptions): Database {
  const path = databaseFile(options.folder);
  removeStaleLogs(path);
  // A program that copies a backup over the file empties it first. Creating tables now would damage the copy.
  if (isEmptied(path)) throw new BeingWrittenError(() => undefined);
  const { ino, size } = ensurePrivateFile(path);
  const isAtPath = (): boolean => existsSync(path) && lstatSync(path).ino === ino;
  const connection = options.driver.open(path);
  let close = (): void => connection.close();
  try {
    const database = new Database(connection, path, options);
    close = () => database.close();
    createTables(database);
    const isChecked = options.isTrusted !== true && size <= CHECKED_BYTES_MAX;
    if (isChecked && !isWhole(database)) throw new CheckFailedError('the integrity check failed');
    return database;
  } catch (error) {
    const isBroken = isCorruption(error);
    if (isBroken && isBeingWritten(path)) throw new BeingWrittenError(close);
    abandon({ isBroken, isAtPath, close }, options);
    throw error;
  }
}

/**
 * Says whether the file is empty and was written a moment ago: by a copy that has just begun, or by another process of
 * svc, which creates its tables within 20 ms.
 */
function isEmptied(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.size === 0 && isBeingWritten(path);
}

/** Reads the whole file, however long that takes, and says whether it is consistent. */
export function isWhole(database: Database): boolean {
  const row = database.get<{ quick_check: string }>('PRAGMA quick_check(1)');
  return row?.quick_check === 'ok';
}

interface Abandoned {
  readonly isBroken: boolean;
  /** Returns false if another process has renamed the damaged file. The file at the path is then a new one. */
  isAtPath(): boolean;
  close(): void;
}

/**
 * Closes a connection. It renames a damaged file and its write-ahead log first: SQLite deletes the log on closing, and
 * the log may contain what the damaged file has lost.
 */
export function abandon(given: Abandoned, options: OpenOptions): void {
  try {
    if (!given.isBroken || !given.isAtPath()) return;
    const aside = setAside(databaseFile(options.folder), options.now);
    options.report(`The memory's file was damaged. svc kept it as ${aside} and created a new one.`);
  } finally {
    given.close();
  }
}

/** Thrown by a call that met another connection's lock, and that may be run again from its beginning. */
export class LockedError extends MemoryError {
  constructor(cause: unknown) {
    super('unavailable', "The memory's file is locked by another program.", { cause });
  }
}

/** Thrown if the database was deleted or replaced while it was open. The thread of the connection must then end. */
export class FileReplacedError extends Error {
  override readonly name = 'FileReplacedError';
}

/**
 * Checks whether the database may be used. Throws MemoryError while another program writes the file. Throws
 * FileReplacedError if the file or its log is missing or was replaced, or if an older content was copied into the file;
 * then the thread must end, because SQLite releases a file only with its last prepared statement.
 */
export function leaveReplaced(
  database: Database,
  options: { readonly folder: string; report(line: string): void },
): void {
  const state = database.look();
  if (state === 'same' || state === 'written') return;
  database.detachOverwritten(state);
  if (state === 'unlogged') database.checkpoint();
  if (state === 'replaced' && !database.isAtPath()) database.leaveMoved();
  const { folder } = options;
  const file = databaseFile(folder);
  // Report it only once: another connection may have noticed it first.
  if (replacedAt(folder) < database.openedAt) {
    options.report(
      `The memory's file ${file} was deleted or replaced while svc ran. svc continues with the new file.`,
    );
    tellOthers(folder);
  }
  throw new FileReplacedError(file);
}

/** Writes the mark `replaced` (files/marks.ts), which other processes, `svc status` and `svc doctor` read. */
function tellOthers(folder: string): void {
  try {
    // The folder was svc's own a moment ago, so do not check its content. If another folder is there now and is open to
    // others, opening the memory refuses it.
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    makePrivateFolder(folder, { inside: stat !== undefined && isPrivate(stat.mode) });
    markReplaced(folder);
  } catch {
    // If the folder cannot be made, opening the memory reports that.
  }
}
