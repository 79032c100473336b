import { randomBytes } from 'node:crypto';

import { lstat, open, rm } from 'node:fs/promises';
import { isAbsolute, join, resolve } from 'node:path';
import { shellQuote } from '../../../../src/core/foreign/shell-quote.ts';
import type { Environment } from '../../../../src/core/settings/config-values.ts';
import { dataFolder } from '../../../../src/adapters/files/own-folders.ts';
import { codeOf, FileError } from '../../../../src/adapters/files/file-error.ts';
import {
  ensurePrivateFolder,
  isOwn,
  isPrivate,
  READ_FLAGS,
  syncFolder,
} from '../../../../src/adapters/files/private-folder.ts';
import { replaceFile } from '../../../../src/adapters/files/replace-file.ts';

/**
 * Reads and writes small files of the service: the settings, the run file, and the pepper, a secret that is part of the
 * hash of every key. The pepper is not in a backup, so nobody can test guessed keys with a backup. To move a service to
 * another machine, copy the pepper too, or make new keys.
 */

const PEPPER_BYTES = 32;
/** Bound on the bytes of a file. The longest one, service.json, usually has some hundred. */
const FILE_BYTES_MAX = 1024 * 1024;

/** Returns the flag's folder, else $SVC_SERVICE_HOME, else `service` in the data folder. */
export function serviceFolder(environment: Environment, flag: string | undefined): string {
  if (flag !== undefined && flag !== '') return resolve(flag);
  const own = environment['SVC_SERVICE_HOME'];
  if (own === undefined || own === '') return join(dataFolder(environment), 'service');
  if (isAbsolute(own)) return resolve(own);
  throw new FileError(
    'SVC_SERVICE_HOME is not an absolute path.',
    'Set an absolute path, or unset it.',
  );
}

export const SETTINGS_FILE = 'service.json';
export const PEPPER_FILE = 'pepper';
export const RUN_FILE = 'running.json';

/** Makes the folder and the pepper if they are missing. */
export async function prepareServiceFolder(folder: string): Promise<void> {
  await ensurePrivateFolder(folder);
  if ((await readPrivate(folder, PEPPER_FILE)) !== undefined) return;
  await writePrivate(folder, PEPPER_FILE, `${randomBytes(PEPPER_BYTES).toString('base64url')}\n`);
}

/** Reads the pepper. Throws FileError if there is no service in the folder, or if the file is missing or invalid. */
export async function readPepper(folder: string): Promise<Buffer> {
  const text = (await readPrivate(folder, PEPPER_FILE)) ?? '';
  const pepper = Buffer.from(text.trim(), 'base64url');
  if (pepper.length === PEPPER_BYTES) return pepper;
  if ((await readPrivate(folder, SETTINGS_FILE)) === undefined) {
    throw new FileError(`There is no service in ${folder}.`, 'Create one: svc-service init');
  }
  const path = join(folder, PEPPER_FILE);
  throw new FileError(
    `${path} is missing or damaged, so the service cannot check keys.`,
    `Restore your copy of it, or copy it from another node. Without a copy all keys and tokens are void: ${newPepperCommand(path)}; then svc-service keys create --name NAME`,
  );
}

/**
 * Returns a shell command that makes a new pepper. svc does not run it, because a new pepper voids all keys.
 */
function newPepperCommand(path: string): string {
  const random = `node -p "crypto.randomBytes(${PEPPER_BYTES}).toString('base64url')"`;
  return `(umask 077; ${random} > ${shellQuote(path, 'sh')})`;
}

/** Reads a file in the folder; undefined if there is none. Refuses links and other users' files. */
export async function readPrivate(folder: string, name: string): Promise<string | undefined> {
  const path = join(folder, name);
  try {
    const handle = await open(path, READ_FLAGS);
    try {
      const stat = await handle.stat();
      if (!stat.isFile() || !isOwn(stat.uid) || stat.size > FILE_BYTES_MAX) {
        throw new FileError(`${path} is not a regular file that you own.`, 'Move it away.');
      }
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    if (error instanceof FileError) throw error;
    const hint = 'Make it readable for you, or name another folder with --folder.';
    throw new FileError(`${path} cannot be read (${codeOf(error)}).`, hint, { cause: error });
  }
}

/** Replaces the file atomically: mode 0600 from creation, synced. */
export async function writePrivate(folder: string, name: string, text: string): Promise<void> {
  const path = join(folder, name);
  try {
    await replaceFile(path, text);
    await syncFolder(folder);
  } catch (error) {
    const hint = 'Make the folder writable for you, or name another one with --folder.';
    throw new FileError(`${path} cannot be written (${codeOf(error)}).`, hint, { cause: error });
  }
}

export async function removePrivate(folder: string, name: string): Promise<void> {
  await rm(join(folder, name), { force: true }).catch(() => undefined);
}

export interface FileMode {
  readonly path: string;
  readonly mode: number;
  /** True if other users may read the file, if it is a link, or if another user owns it. */
  readonly isLoose: boolean;
}

export async function modesOf(paths: readonly string[]): Promise<readonly FileMode[]> {
  const found = await Promise.all(
    paths.map(async (path) => {
      const stat = await lstat(path).catch(() => undefined);
      if (stat === undefined) return [];
      const isFine = !stat.isSymbolicLink() && isOwn(stat.uid) && isPrivate(stat.mode);
      return [{ path, mode: stat.mode & 0o777, isLoose: !isFine }];
    }),
  );
  return found.flat();
}
