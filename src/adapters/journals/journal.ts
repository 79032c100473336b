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
 * An append-only file that survives a kill of the process. A call makes one synchronous write (4 us); syncs run in
 * the background, because they take 4 to 16 ms. Each process writes its own file, and the next process reads those
 * of ended ones. It never waits for another process, and never trusts a line whose length and checksum disagree.
 */

/** Longest time without a sync. A power cut loses at most this and the time of a sync; R27 allows a second. */
const SYNC_MS = 500;
/** Bytes of a line's head: two fields of eight hex digits and a space, the payload's length and its CRC-32. */
const HEAD_BYTES = 18;
const LINE_END = 10;
/** Tolerance between the clocks of process start and file names. */
const START_SLACK_MS = 2000;
/** Age from which a journal of another machine or container is abandoned: its process cannot be checked. */
const SILENCE_MS = 24 * 3600 * 1000;

export interface JournalOptions {
  readonly folder: string;
  /** The kind of lines: the first part of the file's name. */
  readonly name: string;
  /** Bound on the file, in bytes. */
  readonly bytesMax: number;
}

export class Journal {
  readonly #options: JournalOptions;
  #path: string;
  #file: number | undefined;
  /** Device and inode number of the open file; no other file gets them while it is open. */
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

  /** Appends JSON values, all or none. Throws errors of the file system, and RangeError over the bound. */
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
      // On a full disk a write may store only part of the lines, and returns a smaller number.
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

  /** Replaces all values by these. A kill in between leaves the old file, or both. */
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

  /** Closes the file. An empty one is removed; one with lines waits for the next process. */
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

  /** Opens the file, or a new one if it was deleted: lines in a deleted file would be lost. The check takes 2 us. */
  #openFile(): number {
    const old = this.#file;
    if (old !== undefined && isAt(this.#path, this.#identity)) return old;
    makePrivateFolder(this.#options.folder);
    const file = openPrivateFile(this.#path);
    this.#identity = fstatSync(file);
    if (old !== undefined) this.#copyLines(old, file);
    return file;
  }

  /** Copies pending lines from a deleted file, which exists as long as it is open: they are nowhere else. */
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
      // A failed sync is ignored, because nothing can be done about it: the system has the lines.
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
  /** Removes the journal once all its values are stored elsewhere. Keeps a file whose owner may be alive. */
  remove(): void;
}

/** Returns the names for which a folder has journals. */
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

/** Returns all journals of this name, of any process. Call it only if none of those processes is alive. */
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

/** Returns journals whose process has ended or cannot be checked; never those of a living process. */
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
      // Another process has taken over the journal first, or this user may not read it.
      return [];
    }
  });
}

/** Returns the values of all whole lines; lines cut by a kill or a full disk are left out. */
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

/** Returns the owner. `isAlive`: undefined for another machine or container, whose process ids mean nothing here. */
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
 * Returns when a process started, in milliseconds since 1970; undefined if the system does not say. A process id
 * that was reused after a restart must not protect a file for ever.
 */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The program's name in parentheses may contain spaces, so count the fields after it. Every Linux that Node
    // supports has 100 clock ticks per second.
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

/** Returns an id of the machine and, in a container, of its process namespace. */
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
