import { randomBytes } from 'node:crypto';
import {
  closeSync,
  fdatasync,
  fstatSync,
  ftruncateSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { SYNC_MS } from '../../../../src/adapters/state/state-writer.ts';
import {
  makePrivateFolder,
  openPrivateFile,
} from '../../../../src/adapters/files/private-files.ts';

/**
 * An append-only file that survives a kill of the process. append() makes one synchronous write (4 us). Syncs run in
 * the background, because they take 4 to 16 ms. Each process writes a file of its own. The next process that holds the
 * folder's lock reads this file, and skips each line that does not match its length and checksum.
 */

/** Bytes of a line's head: the payload's length and its CRC-32, each as eight hex digits and a space. */
const HEAD_BYTES = 18;
const LINE_END = 10;

export interface JournalOptions {
  readonly folder: string;
  /** The first part of the file's name, which says what the lines contain. It has no hyphen. */
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

  /**
   * Appends JSON values, all or none. Throws errors of the file system, and RangeError if the file would be too long.
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
      // On a full disk a write may store only part of the lines. Remove that part.
      if (written < bytes) ftruncateSync(this.#file, this.#bytes);
    }
    if (written < bytes) throw new Error('short write');
    this.#bytes += bytes;
    this.#syncSoon();
  }

  /** Empties the file. Call it when none of its values is needed any more. */
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

  /** Closes the file, and removes it if it is empty. A file with lines stays for the next process. */
  close(): void {
    clearTimeout(this.#syncTimer);
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    if (this.#bytes === 0) rmSync(this.#path, { force: true });
  }

  #newPath(): string {
    const unique = `${Date.now()}-${randomBytes(6).toString('hex')}`;
    return join(this.#options.folder, `${this.#options.name}-${unique}.journal`);
  }

  /**
   * Returns the open file. Opens it at the first call, and makes it again with its lines if it was deleted. The check
   * for that takes 2 us.
   */
  #openFile(): number {
    const old = this.#file;
    if (old !== undefined && isAt(this.#path, this.#identity)) return old;
    makePrivateFolder(this.#options.folder);
    const file = openPrivateFile(this.#path);
    this.#identity = fstatSync(file);
    if (old !== undefined) this.#copyLines(old, file);
    return file;
  }

  /** Copies the lines of the deleted file `from`, which the system keeps as long as it is open, and closes it. */
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
      // Ignore a failed sync: a kill of the process still loses no line; only a power cut may lose some.
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

/** A journal that an ended process left. */
export interface LeftJournal {
  readonly values: readonly unknown[];
  /** Removes the file. Call it when all its values are stored elsewhere. */
  remove(): void;
}

/** Returns the names (`name` of JournalOptions) of the journals in a folder, each once. */
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

/** Returns the journals of this name. Call it only if the processes that wrote them have ended. */
export function takeJournals({
  folder,
  name,
}: Pick<JournalOptions, 'folder' | 'name'>): LeftJournal[] {
  const files = fileNames(folder).filter((file) => file.startsWith(`${name}-`));
  return files.map((file) => {
    const path = join(folder, file);
    return {
      values: decodeLines(readFileSync(path)),
      remove: () => rmSync(path, { force: true }),
    };
  });
}

/** Returns the values of all whole lines. Skips lines that a kill or a full disk has cut. */
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
