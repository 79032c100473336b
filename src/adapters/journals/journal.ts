import { createHash, randomBytes } from 'node:crypto';
import {
  closeSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { isAlive } from '../processes/run-files.ts';
import { makePrivateFolder, openPrivateFile } from '../files/private-files.ts';

/**
 * An append-only file that survives a kill of the process. append() makes one synchronous write (4 us). Syncs run in the
 * background, because they take 4 to 16 ms. Each process writes a file of its own, and reads the files of ended
 * processes. It never waits for another process, and drops a line that does not match its length and checksum.
 */

/** Time from a write to the next sync. A power cut loses the writes of this time and of the sync; R27 allows a second. */
const SYNC_MS = 500;
/** Bytes of a line's head: the payload's length and its CRC-32, each as eight hex digits and a space. */
const HEAD_BYTES = 18;
const LINE_END = 10;
/** Tolerated difference between the start of a process as the system states it, and the time in a file's name. */
const START_SLACK_MS = 2000;
/** Time without a write after which a journal of another machine or container counts as abandoned. */
const SILENCE_MS = 24 * 3600 * 1000;

export interface JournalOptions {
  readonly folder: string;
  /** The first part of the file's name, which says what its lines contain. */
  readonly name: string;
  /** Bound on the file, in bytes. */
  readonly bytesMax: number;
}

export class Journal {
  readonly #options: JournalOptions;
  #path: string;
  #file: number | undefined;
  /** Device and inode number of the open file, which no other file can get while it is open. */
  #identity: Identity | undefined;
  #bytes = 0;
  #syncTimer: NodeJS.Timeout | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
    this.#path = this.#newPath();
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Appends JSON values, all or none. Throws errors of the file system, and RangeError if the file would be too long. */
  append(values: readonly string[]): void {
    let lines = '';
    let bytes = 0;
    for (const value of values) {
      const length = Buffer.byteLength(value);
      lines += `${hex8(length)} ${hex8(crc32(value))} ${value}\n`;
      bytes += HEAD_BYTES + length + 1;
    }
    if (this.#bytes + bytes > this.#options.bytesMax) throw new RangeError('journal full');
    this.#file = this.#openFile();
    let written = 0;
    try {
      written = writeSync(this.#file, lines);
    } finally {
      // On a full disk a write may store only part of the lines. Remove that part.
      if (written < bytes) ftruncateSync(this.#file, this.#bytes);
    }
    if (written < bytes) throw new Error('short write');
    this.#bytes += bytes;
    this.#syncSoon();
  }

  /** Empties the file, because none of its values is needed any more. */
  reset(): void {
    if (this.#file === undefined || this.#bytes === 0) return;
    ftruncateSync(this.#file, 0);
    this.#bytes = 0;
  }

  /** Replaces all values by writing a new file. A kill meanwhile leaves the old file, or both files. */
  replace(values: readonly string[]): void {
    const old = {
      path: this.#path,
      file: this.#file,
      identity: this.#identity,
      bytes: this.#bytes,
    };
    this.#path = this.#newPath();
    this.#file = undefined;
    this.#bytes = 0;
    try {
      this.append(values);
    } catch (error) {
      this.close();
      this.#path = old.path;
      this.#file = old.file;
      this.#identity = old.identity;
      this.#bytes = old.bytes;
      throw error;
    }
    if (old.file !== undefined) closeSync(old.file);
    rmSync(old.path, { force: true });
  }

  /** Closes the file, and removes it if it is empty. Another process reads a file with lines. */
  close(): void {
    clearTimeout(this.#syncTimer);
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    if (this.#bytes === 0) rmSync(this.#path, { force: true });
  }

  #newPath(): string {
    const owner = `${placeTag()}-${process.pid}-${Date.now()}-${randomBytes(6).toString('hex')}`;
    return join(this.#options.folder, `${this.#options.name}-${owner}.journal`);
  }

  /** Returns the open file. If it was deleted meanwhile, makes it again with its lines. The check takes 2 us. */
  #openFile(): number {
    const old = this.#file;
    if (old !== undefined && isAt(this.#path, this.#identity)) return old;
    makePrivateFolder(this.#options.folder);
    const file = openPrivateFile(this.#path);
    this.#identity = fstatSync(file);
    if (old !== undefined) this.#copyLines(old, file);
    return file;
  }

  /** Copies the lines of a deleted file, whose content exists as long as it is open. Closes that file. */
  #copyLines(from: number, to: number): void {
    const lines = Buffer.alloc(this.#bytes);
    const read = readSync(from, lines, 0, lines.length, 0);
    this.#bytes = writeSync(to, lines.subarray(0, read));
    closeSync(from);
  }

  #syncSoon(): void {
    if (this.#syncTimer !== undefined) return;
    this.#syncTimer = setTimeout(() => {
      this.#syncTimer = undefined;
      // Ignore a failed sync: the system still has the lines and writes them later.
      if (this.#file !== undefined && this.#bytes > 0) fdatasync(this.#file, () => undefined);
    }, SYNC_MS);
    this.#syncTimer.unref();
  }
}

type Identity = Pick<Stats, 'dev' | 'ino'>;

function isAt(path: string, file: Identity | undefined): boolean {
  const there = statSync(path, { throwIfNoEntry: false });
  return there !== undefined && there.ino === file?.ino && there.dev === file.dev;
}

export interface OrphanedJournal {
  readonly values: readonly unknown[];
  /** Removes the journal, unless its owner may be alive. Call it when all its values are stored elsewhere. */
  remove(): void;
}

/** Returns the names of the journals in a folder; see JournalOptions.name. */
export function journalNames(folder: string): readonly string[] {
  return [...new Set(fileNames(folder).map((file) => file.slice(0, file.indexOf('-'))))];
}

/** Returns the bytes of all journals whose names begin with `start`. */
export function journalBytes(folder: string, start: string): number {
  const files = fileNames(folder).filter((file) => file.startsWith(start));
  const sizes = files.map(
    (file) => statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Returns the journals of this name of all processes. Call it only if none of these processes is alive. */
export function takeJournals({
  folder,
  name,
}: Pick<JournalOptions, 'folder' | 'name'>): OrphanedJournal[] {
  const files = fileNames(folder).filter((file) => file.startsWith(`${name}-`));
  return files.map((file) => {
    const path = join(folder, file);
    return {
      values: decodeLines(readFileSync(path)),
      remove: () => rmSync(path, { force: true }),
    };
  });
}

/** Returns the journals of this name whose process has ended or cannot be checked. */
export function findOrphans({ folder, name }: JournalOptions): OrphanedJournal[] {
  return fileNames(folder).flatMap((file) => {
    const path = join(folder, file);
    const owner = ownerOf(file, name);
    if (owner === undefined || owner.isAlive === true) return [];
    const isOurs = owner.isAlive === false || isSilent(path);
    const remove = (): void => (isOurs ? rmSync(path, { force: true }) : undefined);
    try {
      return [{ values: decodeLines(readFileSync(path)), remove }];
    } catch {
      // Another process has taken over the journal and removed it, or this user may not read it.
      return [];
    }
  });
}

/** Returns the values of all whole lines. It skips lines that a kill or a full disk has cut. */
export function decodeLines(bytes: Buffer): unknown[] {
  const values: unknown[] = [];
  let start = 0;
  while (start < bytes.length) {
    const head = bytes.toString('latin1', start, start + HEAD_BYTES);
    const [, length, checksum] = /^([0-9a-f]{8}) ([0-9a-f]{8}) $/.exec(head) ?? [];
    const from = start + HEAD_BYTES;
    const end = from + Number.parseInt(length ?? '0', 16);
    const payload = bytes.subarray(from, end);
    const isWhole =
      bytes[end] === LINE_END && crc32(payload) === Number.parseInt(checksum ?? '', 16);
    if (isWhole) values.push(JSON.parse(payload.toString('utf8')));
    const lineEnd = isWhole ? end : bytes.indexOf(LINE_END, start);
    if (lineEnd < 0) break;
    start = lineEnd + 1;
  }
  return values;
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0');
}

function fileNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter((file) => file.endsWith('.journal'));
  } catch {
    return [];
  }
}

/**
 * Returns the process that owns a journal; undefined if the file has another name. `isAlive` is undefined for a process
 * of another machine or container, whose ids mean nothing here.
 */
function ownerOf(file: string, name: string): { readonly isAlive?: boolean } | undefined {
  if (!file.startsWith(`${name}-`)) return undefined;
  const [tag, pid, startedAt] = file.slice(name.length + 1).split('-');
  if (tag !== placeTag()) return {};
  return { isAlive: isRunning(Number(pid), Number(startedAt)) };
}

function isRunning(pid: number, startedAt: number): boolean {
  if (!isAlive(pid)) return false;
  const start = startOf(pid);
  return start === undefined || start <= startedAt + START_SLACK_MS;
}

/**
 * Returns when a process started, in milliseconds since 1970; undefined if the system does not say. The start shows
 * whether the owner's process id now belongs to another process.
 */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // Count the fields after the program's name, which is in parentheses and may contain spaces. The start is in clock
    // ticks; every Linux that Node supports has 100 per second.
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
    const [, booted] = /^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8')) ?? [];
    const start = Number(booted) * 1000 + ticks * 10;
    return Number.isFinite(start) ? start : undefined;
  } catch {
    return undefined;
  }
}

function isSilent(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Date.now() - stat.mtimeMs > SILENCE_MS;
}

let tag: string | undefined;

/** Returns a hash of the host name and the process namespace: process ids are comparable only within one namespace. */
function placeTag(): string {
  tag ??= createHash('sha256').update(`${hostname()} ${pidNamespace()}`).digest('hex').slice(0, 8);
  return tag;
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return '';
  }
}
