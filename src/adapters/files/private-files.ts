import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  type Stats,
} from 'node:fs';
import { codeOf, FileError } from './file-error.ts';
import { type FolderKind, mustTighten } from './folder-purpose.ts';
import {
  FILE_MODE,
  FOLDER_MODE,
  foreignError,
  isOwn,
  isPrivate,
  linkError,
  makingError,
} from './private-folder.ts';

/**
 * The data folder and what is in it, for those who cannot wait: the store's thread, and what is
 * written before an answer's last byte. Private from birth, so that there is no moment in which a
 * wider mode could be used. Never follows a symbolic link, never writes to a stranger's file.
 */

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Makes the folder 0700, or tightens one of svc's own. Throws FileError for a link, a file, a foreign
 * folder, and one that svc did not make and that is open or holds other things (R40).
 */
export function makePrivateFolder(folder: string, kind?: FolderKind): void {
  try {
    if (mkdirSync(folder, { recursive: true, mode: FOLDER_MODE }) !== undefined) return;
  } catch (error) {
    throw makingError(folder, error);
  }
  const stat = lstatSync(folder);
  if (stat.isSymbolicLink()) throw linkError(folder);
  if (!stat.isDirectory() || !isOwn(stat.uid)) throw foreignError(folder);
  if (mustTighten(folder, stat, kind)) chmodSync(folder, FOLDER_MODE);
}

/**
 * Opens for reading and appending; creates 0600 or tightens. The caller closes the descriptor. Throws
 * FileError.
 */
export function openPrivateFile(path: string): number {
  const file = openOrExplain(path);
  const stat = fstatSync(file);
  if (!stat.isFile() || !isOwn(stat.uid)) {
    closeSync(file);
    throw new FileError(`${path} is not a regular file that you own.`, 'Move it away.');
  }
  if (!isPrivate(stat.mode)) fchmodSync(file, FILE_MODE);
  return file;
}

/**
 * Makes the file 0600 where there is none, or tightens the existing one. It never opens an existing
 * one: closing a descriptor of a database takes back the locks that SQLite has on it in this
 * process. Throws FileError.
 */
export function ensurePrivateFile(path: string): Stats {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there === undefined) closeSync(openPrivateFile(path));
  const stat = there ?? lstatSync(path);
  if (!stat.isFile() || !isOwn(stat.uid)) {
    throw new FileError(`${path} is not a regular file that you own.`, 'Move it away.');
  }
  if (!isPrivate(stat.mode)) chmodSync(path, FILE_MODE);
  return stat;
}

export function syncFile(path: string): void {
  const file = openSync(path, O_RDWR);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function openOrExplain(path: string): number {
  try {
    // Windows knows no O_NOFOLLOW: there the flag is undefined and counts as 0.
    return openSync(path, O_RDWR | O_APPEND | O_CREAT | (O_NOFOLLOW ?? 0), FILE_MODE);
  } catch (cause) {
    const message = `${path} cannot be opened (${codeOf(cause) || 'unknown error'}).`;
    throw new FileError(message, 'Make the file and its folder writable for you.', { cause });
  }
}
