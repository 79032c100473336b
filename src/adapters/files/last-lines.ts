import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** The last whole lines of a file; none where it cannot be read, or is no plain file. Waits for nothing. */
export function lastLines(
  path: string,
  bytesMax: number,
): { readonly lines: readonly string[]; readonly isWhole: boolean } {
  let file: number | undefined;
  try {
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const { size, ...stat } = fstatSync(file);
    if ((stat.mode & constants.S_IFMT) !== constants.S_IFREG) return { lines: [], isWhole: false };
    const start = Math.max(0, size - bytesMax);
    const bytes = Buffer.alloc(size - start);
    const read = readSync(file, bytes, 0, bytes.length, start);
    const lines = bytes.toString('utf8', 0, read).split('\n');
    // The first may have lost its beginning, and the last is still being written.
    return { lines: lines.slice(start === 0 ? 0 : 1, -1), isWhole: start === 0 };
  } catch {
    return { lines: [], isWhole: true };
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
