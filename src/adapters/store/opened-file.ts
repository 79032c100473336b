import {
  type BigIntStats,
  constants,
  copyFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { MemoryError } from '../../core/errors.ts';
import { syncFile } from '../files/private-files.ts';
import type { Descriptors } from './descriptors.ts';

/**
 * Checks whether the files of an open connection are still those at their paths. A process can read a deleted file as
 * long as it is open, but a proof made from such a file would be worthless. A check takes three stat calls, 8 us in
 * all.
 */

/**
 * `written`: SQLite or another program has written to the database file itself, or may have done so (TIME_STEP_MS).
 * `replaced`: another file is at one of the paths, or the database or its `-shm` file is missing. `overwritten`: an
 * older content was copied into the same file. `overwriting`: the same, but the copy may be unfinished. `unlogged`: the
 * write-ahead log was deleted, and there is no new one.
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
/** Offsets in SQLite's file header of the file change counter, the size in pages, and the schema cookie. */
const CHANGES_AT = 24;
const PAGES_AT = 28;
const SCHEMA_AT = 40;
/**
 * Age from which a file's time of change shows every later write. File systems record times in steps of up to 10 ms.
 */
export const TIME_STEP_MS = 50;
/** Time without a write after which a copy of a file counts as finished. A program that copies writes continuously. */
const COPIED_MS = 1000;
/**
 * Age from which the temporary file of #detach() is deleted, because the process that made it must have been killed.
 */
const RESTORED_MS = 10_000;
/** Tolerated difference between the clock of the file system and the clock of this process. */
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
  readonly #identity: string | undefined;
  readonly #logs: (string | undefined)[];
  #changedAt: bigint;
  /** False if the write at `#changedAt` was so recent that a further write may have the same time (TIME_STEP_MS). */
  #isSettled: boolean;
  #header: Header;

  /**
   * Call it after the connection's first read, which creates the write-ahead log. `identity`: that of the file before
   * the connection was opened, so that a file that was replaced meanwhile is noticed.
   */
  constructor(path: string, descriptors: Descriptors, identity = identityOf(path)) {
    this.#path = path;
    this.#descriptor = descriptors.open(path);
    const stat = statSync(path, { bigint: true });
    this.#identity = identity;
    this.#changedAt = stat.ctimeNs;
    this.#isSettled = isOlder(stat.ctimeNs, TIME_STEP_MS);
    this.#logs = LOG_SUFFIXES.map((suffix) => identityOf(path + suffix));
    this.#header = this.#readHeader();
  }

  /** Compares the files at the paths with the opened ones. */
  look(): FileState {
    const stat = statSync(this.#path, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined || this.#identity !== identityIn(stat)) return 'replaced';
    for (const [place, suffix] of LOG_SUFFIXES.entries()) {
      const identity = identityOf(this.#path + suffix);
      // SQLite creates a log at the first read, and deletes it when the last connection closes.
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
      // Let the next call check again and compare with the same header.
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
   * Detaches the file if it was overwritten, after which the connection must be closed. Throws MemoryError while
   * another program writes it. `state`: what look() has returned.
   */
  detachOverwritten(state: FileState): void {
    const isUnfinished = state === 'overwriting' || (state === 'overwritten' && !this.#detach());
    if (isUnfinished) throw beingWritten();
  }

  /**
   * Replaces an overwritten file by a copy of itself, and removes its write-ahead log. The log belongs to the earlier
   * content, and SQLite would write it into the file. After the replacement this connection has another file open, so
   * its closing changes nothing at the path. Returns false while another connection does this.
   */
  #detach(): boolean {
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

  /** Removes the logs that a moved file has left. Another database at its path would use them as its own. */
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

/** Copies a file. Returns false if the copy exists already, because another connection is making it. */
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
 * Removes logs of a deleted database. Another process may create a database and its logs meanwhile, so it removes only
 * logs that existed before it looked for the database.
 */
export function removeStaleLogs(path: string): void {
  const logs = LOG_SUFFIXES.map((suffix) => ({ log: path + suffix, born: birthOf(path + suffix) }));
  if (identityOf(path) !== undefined) return;
  for (const { log, born } of logs) {
    if (born !== undefined && born === birthOf(log)) rmSync(log, { force: true });
  }
}

/** Returns a file's inode number and time of creation. A new file may reuse the number, but has another time. */
function birthOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : `${stat.ino} ${stat.birthtimeNs}`;
}

/**
 * Says whether the header `now` is older than `before`. SQLite's counters never decrease. The size counts too, because
 * several writes may have the same change counter. Only VACUUM makes a database of svc smaller, and it changes the
 * schema cookie.
 */
function isEarlier(now: Header, before: Header): boolean {
  if (!before.isDatabase) return false;
  if (!now.isDatabase || now.changes < before.changes || now.schema < before.schema) return true;
  return now.schema === before.schema && now.pages < before.pages;
}

/** Identifies a file by device and inode number; undefined if it does not exist. */
export function identityOf(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? undefined : identityIn(stat);
}

export function identityIn({ dev, ino }: BigIntStats): string {
  return `${dev} ${ino}`;
}

/** Says whether another program may be writing the file. An error in the file may then disappear soon. */
export function isBeingWritten(path: string): boolean {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat !== undefined && !isOlder(stat.ctimeNs, COPIED_MS);
}

/**
 * Says whether a file's change is older than `ms`. A time more than CLOCK_AHEAD_MS in the future comes from a wrong
 * clock and counts as old.
 */
function isOlder(changedAt: bigint, ms: number): boolean {
  const ageMs = Date.now() - Number(changedAt / 1_000_000n);
  return ageMs > ms || ageMs < -CLOCK_AHEAD_MS;
}

export const BEING_WRITTEN = "Another program is writing to the memory's file.";

export function beingWritten(): MemoryError {
  return new MemoryError('unavailable', BEING_WRITTEN);
}
