import { createReadStream } from 'node:fs';
import { createGunzip } from 'node:zlib';

/** The lines of a text file, one after the other; of a file whose name ends in `.gz`, unpacked. */
export async function* linesOfFile(path: string, bytesMax = Infinity): AsyncGenerator<string> {
  const file = createReadStream(path, { end: bytesMax });
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file;
  // Behind the pipe an error of the file would have no handler.
  file.on('error', (error) => input.destroy(error));
  try {
    yield* linesOf(input);
  } finally {
    file.destroy();
  }
}

/**
 * The lines of a text, which end with \n or \r\n. The readline of Node 24 also ends them at U+2028 and
 * U+2029, which JSON allows inside a string.
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
