import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, lstatSync, openSync, readFileSync } from 'node:fs';
import { lstat, readdir, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { RECORD_CHARS_MAX } from '../../core/memory/record.ts';
import { REFERENCES, referenceOf, textDigest } from '../../core/memory/reference.ts';
import { makePrivateFolder } from './private-files.ts';
import { READ_FLAGS } from './private-folder.ts';
import { replaceFile } from './replace-file.ts';

/**
 * Writes the tool outputs that svc leaves out of prompts as files, `outputs/<reference>.txt` in the data folder. A
 * shell in a read-only sandbox, Codex's default, cannot open a database, but it can read a file. The reference is made
 * from a hash of the text, so the content can be verified.
 */

/** How long a file is kept after its last use. If a session continues later, the file is written again. */
const AGE_MAX_MS = 7 * 24 * 3600 * 1000;
/** Bound on the bytes of all files: the bound that the store has for outputs. */
const BYTES_MAX = 256 * 1024 * 1024;
/** Bound on the bytes of a file that is read. UTF-8 has at most 4 bytes for a character of an output. */
const FILE_BYTES_MAX = 4 * RECORD_CHARS_MAX;

const NAME = new RegExp(`^(${REFERENCES.source})\\.txt$`);
const TEMPORARY = /^\.[0-9a-f]{16}\.tmp$/;

export function outputFolder(dataFolder: string): string {
  return join(dataFolder, 'outputs');
}

/**
 * Writes a file. If it exists with the same size, sets only its time, which counts as its last use. `now`: milliseconds
 * since 1970.
 */
export async function writeOutputFile(
  dataFolder: string,
  output: { readonly ref: string; readonly text: string },
  now: number,
): Promise<void> {
  const folder = outputFolder(dataFolder);
  const path = pathOf(folder, output.ref);
  const bytes = Buffer.from(output.text, 'utf8');
  makePrivateFolder(folder, { inside: true });
  const stat = await lstat(path).catch(() => undefined);
  if (stat?.isFile() === true && stat.size === bytes.length) {
    await utimes(path, now / 1000, now / 1000);
    return;
  }
  const draft = join(folder, `.${randomBytes(8).toString('hex')}.tmp`);
  await replaceFile(path, bytes, { draft });
}

/** Reads a file; undefined if it cannot be read, is too long, or has a content that does not match its name. */
export function readOutputFile(dataFolder: string, ref: string): string | undefined {
  try {
    const folder = outputFolder(dataFolder);
    if (!lstatSync(folder).isDirectory()) return undefined;
    const file = openSync(pathOf(folder, ref), READ_FLAGS);
    try {
      const stat = fstatSync(file);
      if (!stat.isFile() || stat.size > FILE_BYTES_MAX) return undefined;
      const bytes = readFileSync(file);
      const digest = textDigest('tool', bytes);
      return referenceOf(digest) === ref ? bytes.toString('utf8') : undefined;
    } finally {
      closeSync(file);
    }
  } catch {
    return undefined;
  }
}

export async function outputFileRefs(dataFolder: string): Promise<readonly string[]> {
  const names = await namesIn(outputFolder(dataFolder));
  return names.flatMap((name) => NAME.exec(name)?.[1] ?? []);
}

/** Removes files. Throws if one cannot be removed, because forgotten texts must not stay. */
export async function removeOutputFiles(
  dataFolder: string,
  refs: readonly string[],
): Promise<void> {
  const folder = outputFolder(dataFolder);
  for (const ref of refs) await rm(pathOf(folder, ref), { force: true });
}

/** Removes files that are too old, and then the longest unused ones until the rest is within the bound. */
export async function cleanOutputFiles(
  dataFolder: string,
  now: number,
  bytesMax = BYTES_MAX,
): Promise<void> {
  const folder = outputFolder(dataFolder);
  const files: { path: string; bytes: number; used: number }[] = [];
  for (const name of await namesIn(folder)) {
    if (!NAME.test(name) && !TEMPORARY.test(name)) continue;
    const path = join(folder, name);
    const stat = await lstat(path).catch(() => undefined);
    if (stat !== undefined) files.push({ path, bytes: stat.size, used: stat.mtimeMs });
  }
  let bytes = 0;
  for (const file of files.toSorted((one, other) => other.used - one.used)) {
    bytes += file.bytes;
    const isKept = now - file.used <= AGE_MAX_MS && bytes <= bytesMax;
    if (!isKept) await rm(file.path, { force: true });
  }
}

function pathOf(folder: string, ref: string): string {
  const name = `${ref}.txt`;
  if (!NAME.test(name)) throw new Error('not a reference');
  return join(folder, name);
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const stat = await lstat(folder).catch(() => undefined);
  return stat?.isDirectory() === true ? readdir(folder) : [];
}
