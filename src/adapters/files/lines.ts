import { createReadStream, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { createGunzip } from 'node:zlib';

/** Reads the lines of a text file one after the other. Decompresses a file whose name ends in `.gz`. */
export async function* linesOfFile(path: string, bytesMax = Infinity): AsyncGenerator<string> {
  const file = createReadStream(path, { end: bytesMax });
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file;
  // pipe() does not pass on an error of the file.
  file.on('error', (error) => input.destroy(error));
  try {
    yield* linesOf(input);
  } finally {
    file.destroy();
  }
}

/**
 * Splits a text at LF and CRLF. Node's readline cannot be used: from Node 24 on it also splits at U+2028 and U+2029,
 * which JSON allows inside a string.
 */
export async function* linesOf(
  input: AsyncIterable<Uint8Array | string>,
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let begun: string[] = [];
  for await (const piece of input) {
    const text = typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
    const [first = '', ...more] = text.split('\n');
    begun.push(first);
    const last = more.pop();
    if (last === undefined) continue;
    yield withoutReturn(begun.join(''));
    for (const line of more) yield withoutReturn(line);
    begun = [last];
  }
  begun.push(decoder.decode());
  const rest = begun.join('');
  if (rest !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

export interface LastLines {
  readonly lines: readonly string[];
  /** True if the first of these lines is the first line of the file. */
  readonly isWhole: boolean;
  /** Offsets in the file: where the first of these lines begins, and where the last one ends. */
  readonly start: number;
  readonly end: number;
}

/**
 * Reads the whole lines in the last `bytesMax` bytes of a file; none if it cannot be read or is no regular file. It
 * does not wait on a pipe.
 */
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
    // Omit the first line if it may lack its beginning, and the last line if it has no end.
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
