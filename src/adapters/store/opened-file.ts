import { constants, copyFileSync, readSync, renameSync, rmSync, statSync } from 'node:fs';
import { syncFile } from '../files/private-files.ts';
import type { Descriptors } from './descriptors.ts';

/**
 * Checks whether the files of an open connection are still those at their path. A process can go on reading a
 * deleted file that it has open, so a proof made from it would prove nothing. One check takes three stat calls,
 * about 8 us in all.
 */

/**
 * `written`: SQLite or another program wrote to the database file itself. `replaced`: another file is at a path, or
 * the database's is missing. `overwritten`: the same file has an older content; `overwriting`: another program may
 * still be writing it. `unlogged`: the write-ahead log was deleted, and no process has created a new one.
 */
export type FileState =
  | 'same'
  | 'written'
  | 'replaced'
  | 'overwriting'
  | 'overwritten'
  | 'unlogged';

const LOG_SUFFIXES = ['-wal', '-shm'] as const;
const HEADER_BYTES = 100;
const MAGIC = 'SQLite format 3\0';
/** Offsets of big-endian numbers in SQLite's file header: writes of the first page, pages, changes of the tables. */
const CHANGES_AT = 24;
const PAGES_AT = 28;
const SCHEMA_AT = 40;
/** File systems record times in steps of up to 10 ms, so a second write in the same step changes no time. */
const TIME_STEP_MS = 50;
/** How long after its last write a copied file counts as complete: a program that copies writes continuously. */
const COPIED_MS = 1000;
/** After this time without a write, a restored copy belongs to a process that was killed. */
const RESTORED_MS = 10_000;
/** Tolerated difference between the clock that dates files and this process's clock, in milliseconds. */
const CLOCK_AHEAD_MS = 2000;

interface Header {
  readonly isDatabase: boolean;
  readonly changes: number;
  readonly pages: number;
  readonly schema: number;
}

export class OpenedFile {
  readonly #path: string;
  /** A descriptor by which the file's header is read. */
  readonly #descriptor: number;
  readonly #identity: string;
  readonly #logs: (string | undefined)[];
  #changedAt: bigint;
  #isSettled: boolean;
  #header: Header;

  /** Call it after the connection's first read, because the log does not exist before. */
  constructor(path: string, descriptors: Descriptors) {
    this.#path = path;
    this.#descriptor = descriptors.open(path);
    const stat = statSync(path, { bigint: true });
    this.#identity = `${stat.dev} ${stat.ino}`;
    this.#changedAt = stat.ctimeNs;
    this.#isSettled = isOlder(stat.ctimeNs, TIME_STEP_MS);
    this.#logs = LOG_SUFFIXES.map((suffix) => identityOf(path + suffix));
    this.#header = this.#readHeader();
  }

  look(): FileState {
    const stat = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined || this.#identity !== `${stat.dev} ${stat.ino}`) return 'replaced';
    for (const [place, suffix] of LOG_SUFFIXES.entries()) {
      const identity = identityOf(this.#path + suffix);
      // A log is created at the first read, and deleted by the last process that closes the database.
      const known = this.#logs[place];
      if (known !== undefined && known !== identity) {
        return suffix === '-wal' && identity === undefined ? 'unlogged' : 'replaced';
      }
      this.#logs[place] = identity;
    }
    if (stat.ctimeNs === this.#changedAt && this.#isSettled) return 'same';
    this.#changedAt = stat.ctimeNs;
    const header = this.#readHeader();
    if (isEarlier(header, this.#header)) {
      // Keep it unsettled: the next call checks again and compares with the same header.
      this.#isSettled = false;
      return isOlder(stat.ctimeNs, COPIED_MS) ? 'overwritten' : 'overwriting';
    }
    this.#isSettled = isOlder(stat.ctimeNs, TIME_STEP_MS);
    this.#header = header;
    return 'written';
  }

  /** Says whether the same file is still at the path, whatever was written to it. */
  isAtPath(): boolean {
    return this.#identity === identityOf(this.#path);
  }

  /**
   * Gives an overwritten file a new identity and removes its log. The log belongs to the earlier content, and SQLite
   * would write it into the restored file. When a connection's file has moved, closing it does not touch the path.
   * Returns false while another connection does this.
   */
  detach(): boolean {
    const copy = `${this.#path}.restoring`;
    if (!copyAlone(this.#path, copy)) return false;
    syncFile(copy);
    if (!this.isAtPath()) {
      rmSync(copy);
      return true;
    }
    for (const suffix of LOG_SUFFIXES) rmSync(this.#path + suffix, { force: true });
    renameSync(copy, this.#path);
    return true;
  }

  /** Removes the logs of a moved file: another database at its path would use them as its own. */
  removeLogs(): void {
    for (const [place, suffix] of LOG_SUFFIXES.entries()) {
      const path = this.#path + suffix;
      if (this.#logs[place] === identityOf(path)) rmSync(path, { force: true });
    }
  }

  #readHeader(): Header {
    const bytes = Buffer.alloc(HEADER_BYTES);
    const read = readSync(this.#descriptor, bytes, 0, HEADER_BYTES, 0);
    return {
      isDatabase: read === HEADER_BYTES && bytes.toString('latin1', 0, MAGIC.length) === MAGIC,
      changes: bytes.readUInt32BE(CHANGES_AT),
      pages: bytes.readUInt32BE(PAGES_AT),
      schema: bytes.readUInt32BE(SCHEMA_AT),
    };
  }
}

/**
 * Says whether this connection makes the copy alone. The copy exists only while one connection makes it, or after
 * that process was killed.
 */
function copyAlone(path: string, copy: string): boolean {
  const age = Date.now() - (statSync(copy, { throwIfNoEntry: false })?.ctimeMs ?? Date.now());
  if (age > RESTORED_MS) rmSync(copy, { force: true });
  try {
    copyFileSync(path, copy, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if (error instanceof Error && Reflect.get(error, 'code') === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Removes logs without a database, which belong to a deleted file. Only logs from before the check are removed,
 * because another process may be creating both just now.
 */
export function removeStaleLogs(path: string): void {
  const logs = LOG_SUFFIXES.map((suffix) => ({ log: path + suffix, born: birthOf(path + suffix) }));
  if (identityOf(path) !== undefined) return;
  for (const { log, born } of logs) {
    if (born !== undefined && born === birthOf(log)) rmSync(log, { force: true });
  }
}

/** Returns what identifies a file. A newly created file may reuse an inode number, but not the time. */
function birthOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.ino} ${stat.birthtimeNs}`;
}

/**
 * Says whether a header is older. SQLite's counters never decrease. Only VACUUM makes a database of svc smaller, and
 * it counts as a change of the tables. Writes of one connection may share a number, so the size counts too.
 */
function isEarlier(now: Header, before: Header): boolean {
  if (!before.isDatabase) return false;
  if (!now.isDatabase || now.changes < before.changes || now.schema < before.schema) return true;
  return now.schema === before.schema && now.pages < before.pages;
}

function identityOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.dev} ${stat.ino}`;
}

/** Says whether another program may still be writing the file, so that an error in it may soon disappear. */
export function isBeingWritten(path: string): boolean {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat !== undefined && !isOlder(stat.ctimeNs, COPIED_MS);
}

/**
 * Says whether a change is older than `ms`. A time far in the future comes from a wrong clock, so it counts as old.
 */
function isOlder(changedAt: bigint, ms: number): boolean {
  const ageMs = Date.now() - Number(changedAt / 1_000_000n);
  return ageMs > ms || ageMs < -CLOCK_AHEAD_MS;
}
