import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
} from 'node:fs';

/**
 * Folders and files that only their user may read, so from birth: there is no moment in which a
 * wider mode could be used. Never follows a symbolic link, never writes to a stranger's file.
 */

const { O_APPEND, O_CREAT, O_NOFOLLOW, O_RDWR } = constants;

/** Makes the folder 0700 or tightens it. Throws when it is a link, no folder, or someone else's. */
export function makePrivateFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || isForeign(stat.uid)) throw new Error('not a folder of this user');
  if ((stat.mode & 0o077) !== 0) chmodSync(folder, 0o700);
}

/** Opens for reading and appending; creates 0600 or tightens. The caller closes the descriptor. */
export function openPrivateFile(path: string): number {
  // Windows knows no O_NOFOLLOW: there the flag is undefined and counts as 0.
  const file = openSync(path, O_RDWR | O_APPEND | O_CREAT | (O_NOFOLLOW ?? 0), 0o600);
  const stat = fstatSync(file);
  if (!stat.isFile() || isForeign(stat.uid)) {
    closeSync(file);
    throw new Error('not a file of this user');
  }
  if ((stat.mode & 0o077) !== 0) fchmodSync(file, 0o600);
  return file;
}

function isForeign(uid: number): boolean {
  return process.getuid !== undefined && uid !== process.getuid();
}
