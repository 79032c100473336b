import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

export interface LastLines {
  readonly lines: readonly string[];
  /** They begin where the file does. */
  readonly isWhole: boolean;
  /** The bytes of the file in front of the first of them, and up to the end of the last one. */
  readonly start: number;
  readonly end: number;
}

/** The last whole lines of a file; none where it cannot be read, or is no plain file. Waits for nothing. */
export function lastLines(path: string, bytesMax: number): LastLines {
  const nothing = { lines: [], start: 0, end: 0 };
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const { size, ...stat } = fstatSync(file);
    if ((stat.mode & constants.S_IFMT) !== constants.S_IFREG) return { ...nothing, isWhole: false };
    const from = Math.max(0, size - bytesMax);
    const bytes = Buffer.alloc(size - from);
    const read = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, from));
    // The first may have lost its beginning, and the last is still being written.
    const start = from === 0 ? 0 : read.indexOf(NEWLINE) + 1;
    const end = Math.max(start, read.lastIndexOf(NEWLINE) + 1);
    const lines = read.toString('utf8', start, end).split('\n').slice(0, -1);
    return { lines, isWhole: from === 0, start: from + start, end: from + end };
  } catch {
    return { ...nothing, isWhole: true };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const NEWLINE = 0x0a;
