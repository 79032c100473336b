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
 * The one SQLite file, opened with the settings that durability and privacy need. A broken file is
 * renamed so that its name says so, and a new one is begun; it is never deleted and never repaired.
 */

/**
 * Statements after which a text that was read may be deleted or changed. The tables that are
 * missing here hold no texts, and nearly every write deletes rows from them. A space
 * raises its counter when a purge begins.
 */
const TAKES_TEXTS =
  /^\s*(?:DELETE(?! FROM (?:signals|ledger|tenant_ledger|requests)\b)|UPDATE (?:outputs|records|tenant_spaces SET counter))\b/i;
/** PRAGMA quick_check reads the whole file: 16 MiB take about 50 ms, larger ones are trusted. */
const CHECKED_BYTES_MAX = 16 * 1024 * 1024;
/** Another process holds the write lock for one short transaction, on a bad disk for seconds. */
const BUSY_MS = 5000;
/** One second in all: creating the tables takes about 20 ms. */
const OPEN_ATTEMPTS = 50;
/** As long as it takes to copy a backup of some gigabytes over the file: ten seconds in all. */
const COPY_ATTEMPTS = 500;
const OPEN_RETRY_MS = 20;

export interface OpenOptions {
  readonly folder: string;
  readonly driver: Driver;
  readonly descriptors: Descriptors;
  readonly busyMs?: number;
  readonly isTrusted?: boolean;
  /** Milliseconds since 1970, for the name of a file that is set aside. */
  readonly now: number;
  report(line: string): void;
}

export class Database {
  readonly #rows: Statements;
  #deletions = 0;
  /** Times that the file itself was written, by a checkpoint or by another program. */
  #writings = 0;
  readonly #file: OpenedFile;
  /** Milliseconds since 1970. */
  readonly openedAt = Date.now();
  readonly sqliteVersion: string;
  readonly journalMode: string;

  /** `path`: of the file that the connection has open. */
  constructor(
    connection: Connection,
    path: string,
    { descriptors, busyMs = BUSY_MS }: Pick<OpenOptions, 'descriptors' | 'busyMs'>,
  ) {
    this.#rows = new Statements(connection);
    this.sqliteVersion = String(this.#rows.value('SELECT sqlite_version()'));
    // WAL_SYNCHRONOUS may be compiled in as NORMAL: it is set, never assumed.
    const mode = isAtLeast(this.sqliteVersion, SAFE_WAL_VERSION) ? 'WAL' : 'DELETE';
    connection.exec(`PRAGMA busy_timeout = ${busyMs}`);
    this.journalMode = String(this.#rows.value(`PRAGMA journal_mode = ${mode}`));
    connection.exec('PRAGMA synchronous = FULL');
    connection.exec('PRAGMA secure_delete = ON');
    connection.exec('PRAGMA mmap_size = 0');
    connection.exec('PRAGMA foreign_keys = ON');
    // Else a row that INSERT OR REPLACE deletes is not counted as removed.
    connection.exec('PRAGMA recursive_triggers = ON');
    // Kibibytes when negative. 16 MiB hold the index pages of 100,000 passages.
    connection.exec('PRAGMA cache_size = -16384');
    // A checkpoint gives the space of a large write-ahead log back.
    connection.exec('PRAGMA journal_size_limit = 4194304');
    this.#file = new OpenedFile(path, descriptors);
  }

  /**
   * Whether the files at the path still are those that are open. After any write to the file itself
   * SQLite's pages are read again: it cannot know of a write that was not its own.
   */
  look(): FileState {
    const state = this.#file.look();
    if (state !== 'written') return state;
    this.#writings += 1;
    this.#rows.exec('PRAGMA shrink_memory');
    return state;
  }

  /** See OpenedFile.detach. The connection is then to be closed. */
  detach(): boolean {
    return this.#file.detach();
  }

  /** Moves what the write-ahead log holds into the file. */
  checkpoint(): void {
    this.#rows.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  }

  /** See Statements. */
  emptyLog(): boolean {
    return this.#rows.emptyLog();
  }

  /** The file has another path or none: it gets what its log holds, and the path is left clean. */
  leaveMoved(): void {
    try {
      this.checkpoint();
    } catch {
      // A disk that is full or gone: the file is as whole as after a kill.
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

  /** The number of rows changed. */
  run(sql: string, ...values: SqlValue[]): number {
    const changes = this.#rows.run(sql, ...values);
    if (changes > 0 && TAKES_TEXTS.test(sql)) this.#deletions += 1;
    return changes;
  }

  exec(sql: string): void {
    this.#rows.exec(sql);
  }

  /**
   * Changes as soon as a text that was read may have been deleted. That is after each commit of
   * another connection (when SQLite too forgets the pages that it has read), after each deletion by
   * this one, and after each write to the file that `look` saw.
   */
  generation(): string {
    const commits = this.get<{ data_version: number }>('PRAGMA data_version')?.data_version ?? 0;
    return `${commits} ${this.#writings} ${this.#deletions}`;
  }

  /** All or nothing, on disk when it returns. */
  transaction<Result>(work: () => Result): Result {
    return this.#rows.transaction(work);
  }

  /**
   * All or nothing, and safe from a kill of the process, but a power cut may take it. For what is not
   * missed: a sync takes milliseconds, in which no recall is answered.
   */
  unsyncedTransaction(work: () => void): void {
    this.#rows.exec('PRAGMA synchronous = NORMAL');
    try {
      this.transaction(work);
    } finally {
      this.#rows.exec('PRAGMA synchronous = FULL');
    }
  }

  /** Reads of one moment, whatever another connection writes meanwhile. */
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

/** Throws what the file system or SQLite throws, but never for a file that is merely broken. */
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

/** The file is broken, and another program has just written to it: it may be half of a copy. */
class BeingWrittenError extends MemoryError {
  /** SQLite deletes the log with the last connection, and a broken file is set aside with its log. */
  readonly close: () => void;

  constructor(close: () => void) {
    super('unavailable', BEING_WRITTEN);
    this.close = close;
  }
}

// Turning a new file to WAL needs it alone, and SQLite does not wait for that: two processes that
// begin together must try again.
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
      // Who says how long to wait has waited so long.
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
  /** False when another process has set the file aside: then the path has a new one, which must stay. */
  isAtPath(): boolean;
  close(): void;
}

/**
 * Closes a connection. A broken file is set aside first, because SQLite deletes the write-ahead log
 * when it closes, and the log may hold what the broken file lost.
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

/** The database was deleted or replaced while it was open: nothing of this connection counts any more. */
export class FileReplacedError extends Error {
  override readonly name = 'FileReplacedError';
}

/**
 * Throws MemoryError while another program writes the file, and FileReplacedError when the files at the path are not those that the connection has open. The
 * thread must then end: with it go the statements, and SQLite leaves a file when the last one is gone.
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
  // Another connection may have found it first: it is said once.
  if (replacedAt(folder) < database.openedAt) {
    options.report(
      `The memory's file ${file} was deleted or replaced while svc ran. svc continues with the new file.`,
    );
    tellOthers(folder);
  }
  throw new FileReplacedError(file);
}

/** The other processes on the folder, and the person who looks with `svc status` or `svc doctor`. */
function tellOthers(folder: string): void {
  try {
    // It was svc's own a moment ago. An open one in its place is judged when it is opened.
    const stat = lstatSync(folder, { throwIfNoEntry: false });
    makePrivateFolder(folder, { inside: stat !== undefined && isPrivate(stat.mode) });
    markReplaced(folder);
  } catch {
    // A folder that cannot be made: the memory is unavailable, and opening it says so.
  }
}
