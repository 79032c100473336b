import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { FILE_MODE, isOwn, isPrivate } from './private-folder.ts';
import { makePrivateFolder } from './private-files.ts';

/**
 * The secret of this machine, in the data folder. Hooks mark their text with it, so that the proxy recognises it, and the
 * accounts of quota rows are hashed with it. It is no part of the configuration: hooks work without one, and a new local
 * token changes neither.
 */

const NAME = 'hook.key';
const KEY = /^[A-Za-z0-9_-]{43}$/;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** Makes it where there is none. Undefined where it cannot be had: then a hook says nothing. */
export function hookKey(folder: string): string | undefined {
  const known = readHookKey(folder);
  if (known !== undefined) return known;
  const draft = join(folder, `${NAME}-${process.pid}`);
  try {
    makePrivateFolder(folder);
    const file = openSync(draft, O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), FILE_MODE);
    writeSync(file, randomBytes(32).toString('base64url'));
    closeSync(file);
    // Two hooks may begin at once: the first link stays.
    linkSync(draft, join(folder, NAME));
  } catch {
    // Another process was first, or the folder cannot be written.
  }
  rmSync(draft, { force: true });
  return readHookKey(folder);
}

/** Undefined where no hook has run yet, or the file is not svc's own. */
export function readHookKey(folder: string): string | undefined {
  let file: number | undefined;
  try {
    file = openSync(join(folder, NAME), O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
    const stat = fstatSync(file);
    if (!stat.isFile() || !isOwn(stat.uid) || !isPrivate(stat.mode) || stat.size > 64)
      return undefined;
    const text = readFileSync(file, 'utf8');
    return KEY.test(text) ? text : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
