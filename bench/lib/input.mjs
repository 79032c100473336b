/** Reads the files that the person of a bench names. */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

/** The person named something wrong: the bench prints the message alone. */
export class InputError extends Error {}

/** JSON, plain or gzipped. */
export function readJson(file) {
  const bytes = readBytes(file);
  const isGzipped = bytes[0] === 0x1f && bytes[1] === 0x8b;
  try {
    return JSON.parse(isGzipped ? gunzipSync(bytes) : bytes);
  } catch (cause) {
    throw new InputError(`${file} is neither JSON nor gzipped JSON.`, { cause });
  }
}

function readBytes(file) {
  try {
    return readFileSync(file);
  } catch (cause) {
    throw new InputError(`${file} cannot be read (${cause.code}).`, { cause });
  }
}

/** The exit code of `run`: 2 for wrong input. */
export async function exitCodeOf(run) {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
}
