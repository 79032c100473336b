import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { codeOf, FileError, folderHint } from './file-error.ts';
import { type FolderKind, mustTighten, OTHERS } from './folder-purpose.ts';
import { shellQuote } from '../../core/foreign/shell-quote.ts';

/**
 * Makes folders that only their owner may read, and restricts the modes of existing ones. It changes a mode only
 * through an open handle, because a path could be a link.
 */

export const FOLDER_MODE = 0o700;
export const FILE_MODE = 0o600;

const { O_RDONLY, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK } = constants;
/** Flags to open a file for reading: no link is followed, and a pipe does not block. Windows has neither of the two. */
export const READ_FLAGS = O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0);

/**
 * Makes the folder with mode 0700, or restricts the mode of an existing one. Throws FileError for a link, a file and
 * another user's folder, and for a folder that mustTighten() refuses.
 */
export async function ensurePrivateFolder(path: string, kind?: FolderKind): Promise<void> {
  try {
    const made = await mkdir(path, { recursive: true, mode: FOLDER_MODE });
    if (made !== undefined) return;
  } catch (error) {
    throw makingError(path, error);
  }
  await tightenFolder(path, kind);
}

/** Returns the error for the user if a folder could not be made with its parents. */
export function makingError(path: string, cause: unknown): FileError {
  // On a read-only file system Node's recursive mkdir() reports ENOENT.
  if (codeOf(cause) !== 'ENOENT') return folderError(path, cause);
  const message = `${path} cannot be made: its file system is read-only.`;
  return new FileError(message, folderHint('EROFS'), { cause });
}

/** Returns the folder's permission bits; undefined if there is no folder. */
export async function folderMode(path: string): Promise<number | undefined> {
  try {
    const handle = await openFolder(path);
    const { mode } = await handle.stat();
    await handle.close();
    return mode & 0o777;
  } catch (error) {
    if (error instanceof FileError && codeOf(error.cause) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Restricts a folder's mode. Returns true if it was too open. Throws FileError like ensurePrivateFolder(). */
export async function tightenFolder(path: string, kind?: FolderKind): Promise<boolean> {
  const handle = await openFolder(path);
  try {
    return mustTighten(path, await handle.stat(), kind) && (await tighten(handle, FOLDER_MODE));
  } finally {
    await handle.close();
  }
}

/** Throws the FileError that ensurePrivateFolder() would throw, and changes nothing; for `svc doctor`. */
export async function checkFolder(path: string, kind?: FolderKind): Promise<void> {
  const handle = await openFolder(path);
  try {
    mustTighten(path, await handle.stat(), kind);
  } finally {
    await handle.close();
  }
}

export async function tighten(handle: FileHandle, mode: number): Promise<boolean> {
  const stat = await handle.stat();
  if (isPrivate(stat.mode)) return false;
  await handle.chmod(mode);
  return true;
}

export function isPrivate(mode: number): boolean {
  return process.platform === 'win32' || (mode & OTHERS) === 0;
}

export function isOwn(uid: number): boolean {
  return process.getuid === undefined || process.getuid() === uid;
}

/** Syncs the folder, so that a rename in it survives a power cut. Does nothing on Windows. */
export async function syncFolder(path: string): Promise<void> {
  // Node cannot sync a folder on Windows. A rename is atomic there, but a power cut may undo it.
  if (process.platform === 'win32') return;
  const handle = await openFolder(path);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function openFolder(path: string): Promise<FileHandle> {
  if (process.platform !== 'win32') await refuseLink(path);
  const handle = await openOrExplain(path);
  const stat = await handle.stat();
  if (stat.isDirectory() && isOwn(stat.uid)) return handle;
  await handle.close();
  throw foreignError(path);
}

async function openOrExplain(path: string): Promise<FileHandle> {
  try {
    return await open(path, READ_FLAGS | (O_DIRECTORY ?? 0));
  } catch (error) {
    throw folderError(path, error);
  }
}

async function refuseLink(path: string): Promise<void> {
  const stat = await lstat(path).catch((error: unknown) => {
    throw folderError(path, error);
  });
  if (stat.isSymbolicLink()) throw linkError(path);
}

export function linkError(path: string): FileError {
  return new FileError(
    `${path} is a symbolic link, and svc stores no secrets behind links.`,
    `Replace it by a folder: rm ${shellQuote(path, 'sh')}`,
  );
}

export function foreignError(path: string): FileError {
  return new FileError(`${path} belongs to another user.`, folderHint(''));
}

export function folderError(path: string, cause: unknown): FileError {
  const code = codeOf(cause);
  if (code === 'ENOENT')
    return new FileError(`${path} does not exist.`, 'Run: svc setup', { cause });
  if (code === 'ENOTDIR' || code === 'EEXIST') {
    return new FileError(`${path} is not a folder.`, 'Move the file away.', {
      cause,
    });
  }
  const message = `${path} cannot be used (${code || 'unknown error'}).`;
  return new FileError(message, folderHint(code), { cause });
}
