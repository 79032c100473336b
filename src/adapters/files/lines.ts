import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { createGunzip } from 'node:zlib';

/** The lines of a text file, one after the other; of a file whose name ends in `.gz`, unpacked. */
export async function* linesOfFile(path: string): AsyncGenerator<string> {
  const file = createReadStream(path);
  const input = path.endsWith('.gz') ? file.pipe(createGunzip()) : file;
  // Behind the pipe an error of the file would have no handler.
  file.on('error', (error) => input.destroy(error));
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) yield line;
  } finally {
    file.destroy();
  }
}
