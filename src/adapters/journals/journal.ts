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
import { makePrivateFolder, openPrivateFile } from '../files/private-files.ts';

/**
 * An append-only file that survives a kill of the process. A call makes one synchronous write (4
 * us); the sync runs in the background, as it takes 4 to 16 ms. Each process writes a file of its
 * own, and the next process reads the files of dead ones. It never blocks on another process and
 * never trusts a line whose length and checksum do not agree.
 */

/** A power cut takes at most the last half second and the time of a sync; R27 allows a second. */
const SYNC_MS = 500;
/** Two blank-ended fields of eight hex digits: the payload's bytes and their CRC-32. */
const HEAD_BYTES = 18;
const LINE_END = 10;
/** Clocks of process start and of file names may differ a little. */
const START_SLACK_MS = 2000;
/** On another machine or in another container an owner cannot be asked; a day of silence is an answer. */
const SILENCE_MS = 24 * 3600 * 1000;

export interface JournalOptions {
  readonly folder: string;
  /** The kind of lines: the first part of the file's name. */
  readonly name: string;
  /** Bytes of the file. */
  readonly bytesMax: number;
}

export class Journal {
  readonly #options: JournalOptions;
  #path: string;
  #file: number | undefined;
  /** The open file: no other one gets its device and number while it is open. */
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

  /**
   * All values or none; they are JSON. Throws what the file system throws, and RangeError over the
   * bound; the file is then as before.
   */
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
      // A full disk takes a part of the lines and says so with a short count.
      if (written < bytes) ftruncateSync(this.#file, this.#bytes);
    }
    if (written < bytes) throw new Error('short write');
    this.#bytes += bytes;
    this.#syncSoon();
  }

  /** Nothing in it is needed any more: its text leaves the disk. */
  reset(): void {
    if (this.#file === undefined || this.#bytes === 0) return;
    ftruncateSync(this.#file, 0);
    this.#bytes = 0;
  }

  /** Forgets all but these values. A kill in between leaves the old file, or both. */
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

  /** An empty file is removed; one that holds lines waits for the next process. */
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

  /** A line in a file that was deleted, alone or with its folder, is lost with this process: 2 us a look. */
  #openFile(): number {
    const old = this.#file;
    if (old !== undefined && isAt(this.#path, this.#identity)) return old;
    makePrivateFolder(this.#options.folder);
    const file = openPrivateFile(this.#path);
    this.#identity = fstatSync(file);
    if (old !== undefined) this.#copyLines(old, file);
    return file;
  }

  /**
   * The pending lines are on disk nowhere else; the deleted file still holds them while it is open.
   */
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
      // A sync that fails changes nothing that could be done: the lines are with the system.
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
  /** When all its values are safe elsewhere. Keeps the file when its owner may still be alive. */
  remove(): void;
}

/** The names of which there are journals in a folder. */
export function journalNames(folder: string): readonly string[] {
  return [...new Set(fileNames(folder).map((file) => file.slice(0, file.indexOf('-'))))];
}

/** Bytes of all journals whose names begin so. */
export function journalBytes(folder: string, start: string): number {
  const files = fileNames(folder).filter((file) => file.startsWith(start));
  const sizes = files.map(
    (file) => statSync(join(folder, file), { throwIfNoEntry: false })?.size ?? 0,
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * All journals of this name, whichever process they are of. For a caller who knows that none of those
 * processes lives.
 */
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

/** Journals whose process is dead, or cannot be asked. Never one of a living process. */
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
      // Another process took it over first, or it is not ours to read.
      return [];
    }
  });
}

/** The values of all whole lines; what a kill or a full disk tore is left out. */
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

/** `isAlive` undefined: of another machine or container, where process numbers mean nothing here. */
function ownerOf(file: string, name: string): { readonly isAlive?: boolean } | undefined {
  if (!file.startsWith(`${name}-`)) return undefined;
  const [tag, pid, startedAt] = file.slice(name.length + 1).split('-');
  if (tag !== placeTag()) return {};
  return { isAlive: isAlive(Number(pid), Number(startedAt)) };
}

function isAlive(pid: number, startedAt: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: the process lives, but belongs to another user.
    return error instanceof Error && Reflect.get(error, 'code') === 'EPERM';
  }
  const start = startOf(pid);
  return start === undefined || start <= startedAt + START_SLACK_MS;
}

/**
 * When the process began, in milliseconds since 1970; undefined where the system does not say. A
 * number that was given to another process after a restart must not keep a file for ever.
 */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets may hold blanks: fields are counted behind it. The clock ticks 100 times
    // a second on every Linux that Node runs on.
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

/** Names the machine and, in a container, its own set of process numbers. */
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
