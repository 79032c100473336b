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
 * Makes and opens files in the data folder synchronously, for code that cannot wait: the store's thread, and the write
 * before an answer's last byte. Files get their mode on creation. Links at the end of a path (except on Windows) and
 * other users' files are refused.
 */

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Makes the folder with mode 0700, or restricts the mode of an existing one. Throws FileError for a link, a file and
 * another user's folder, and for a folder that mustTighten() refuses.
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
 * Opens a file for reading and appending. It creates the file with mode 0600, or restricts the mode of an existing one.
 * The caller closes the descriptor. Throws FileError.
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
 * Creates a file with mode 0600, or restricts the mode of an existing one. It does not open an existing file, because
 * closing a descriptor of a database would drop SQLite's locks on it in this process. Throws FileError.
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
    // Windows has no O_NOFOLLOW, so the constant is undefined there.
    return openSync(path, O_RDWR | O_APPEND | O_CREAT | (O_NOFOLLOW ?? 0), FILE_MODE);
  } catch (cause) {
    const message = `${path} cannot be opened (${codeOf(cause) || 'unknown error'}).`;
    throw new FileError(message, 'Make the file and its folder writable for you.', { cause });
  }
}
