import { constants } from 'node:fs';
import { access, lstat, open, readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { LooseMode } from './config-file.ts';
import { codeOf, succeeds } from './file-error.ts';
import {
  FILE_MODE,
  isOwn,
  isPrivate,
  READ_FLAGS,
  tighten,
  tightenFolder,
} from './private-folder.ts';
import { databaseFile } from './database-file.ts';
import { isFolderName, ownNamesIn } from './folder-purpose.ts';

/** Checks and restricts the modes of the files that svc makes in the data folder. It ignores other files there. */

/** Matches the files and folders that svc makes directly in the data folder. */
const DATA_NAMES = ownNamesIn('data');
/** Matches a damaged database that svc has renamed, but not the `-wal` and `-shm` files that belong to it. */
const SET_ASIDE = /^(?:memory|state)\.db\.corrupt-[\dTZ.-]+$/;
/** Bound on the files that are checked. A folder has more only if many killed processes have left files behind. */
const FILES_MAX = 1000;

/** Returns svc's own files and folders whose modes are open to other users. Skips links and other users' files. */
export async function looseDataFiles(folder: string): Promise<readonly LooseMode[]> {
  const loose: LooseMode[] = [];
  for (const path of await ownFiles(folder)) {
    const stat = await lstat(path).catch(() => undefined);
    if (stat === undefined || stat.isSymbolicLink() || !isOwn(stat.uid)) continue;
    if (isPrivate(stat.mode)) continue;
    loose.push({ path, mode: stat.mode & 0o777 });
  }
  return loose;
}

/** Returns the damaged databases that svc has renamed and replaced by new ones. */
export async function findSetAside(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names.filter((name) => SET_ASIDE.test(name)).map((name) => join(folder, name));
}

/**
 * Returns the first path that cannot be written: the folder, or the nearest existing one above it, or the database
 * `memory.db` in it. Undefined if all can be written.
 */
export async function findUnwritable(folder: string): Promise<string | undefined> {
  for (const path of [await nearestFolder(folder), databaseFile(folder)]) {
    const code = await access(path, constants.W_OK).then(() => '', codeOf);
    if (['EACCES', 'EPERM', 'EROFS'].includes(code)) return path;
  }
  return undefined;
}

async function nearestFolder(folder: string): Promise<string> {
  const isEnd = dirname(folder) === folder || (await succeeds(lstat(folder)));
  return isEnd ? folder : nearestFolder(dirname(folder));
}

/** Restricts modes that are too open. Returns the changed paths. */
export async function tightenDataFiles(folder: string): Promise<readonly string[]> {
  const mended: string[] = [];
  for (const { path } of await looseDataFiles(folder)) {
    const isMended = isFolderName(basename(path))
      ? tightenFolder(path, { inside: true })
      : tightenFile(path);
    if (await isMended) mended.push(path);
  }
  return mended;
}

async function tightenFile(path: string): Promise<boolean> {
  const handle = await open(path, READ_FLAGS).catch(() => undefined);
  if (handle === undefined) return false;
  try {
    return await tighten(handle, FILE_MODE);
  } finally {
    await handle.close();
  }
}

async function ownFiles(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder).catch((): string[] => []);
  return names
    .filter((name) => DATA_NAMES.test(name))
    .slice(0, FILES_MAX)
    .map((name) => join(folder, name));
}
