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
import { FILE_MODE, isOwn, isPrivate, READ_FLAGS } from './private-folder.ts';
import { makePrivateFolder } from './private-files.ts';

/**
 * The hook key: a secret of this machine, in the data folder. A hook adds to its text a hash that is keyed by the hook
 * key, so that the proxy recognises the text. The request log contains accounts only as hashes by the same key. The key
 * is not in the configuration, because hooks work without a configuration, and because the hashes of accounts must stay
 * valid when the local token changes.
 */

const NAME = 'hook.key';
const KEY = /^[A-Za-z0-9_-]{43}$/;
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

/** Returns the key, and creates one if there is none. If it returns undefined (no valid key), a hook adds no text. */
export function hookKey(folder: string): string | undefined {
  const known = readHookKey(folder);
  if (known !== undefined) return known;
  const draft = join(folder, `${NAME}-${process.pid}`);
  try {
    makePrivateFolder(folder);
    const file = openSync(draft, O_WRONLY | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), FILE_MODE);
    writeSync(file, randomBytes(32).toString('base64url'));
    closeSync(file);
    // If two hooks do this at the same time, the second link fails and the first key stays.
    linkSync(draft, join(folder, NAME));
  } catch {
    // Another process has created the key, or the folder cannot be written.
  }
  rmSync(draft, { force: true });
  return readHookKey(folder);
}

/** Returns the key; undefined if there is none, if it is invalid, or if another user owns the file or may read it. */
export function readHookKey(folder: string): string | undefined {
  let file: number | undefined;
  try {
    file = openSync(join(folder, NAME), READ_FLAGS);
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
