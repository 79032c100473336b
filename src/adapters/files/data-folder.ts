import { isAbsolute, join, resolve } from 'node:path';
import envPaths from 'env-paths';
import type { Environment } from '../../core/settings/config-values.ts';
import { absolute } from './config-folder.ts';
import { FileError } from './file-error.ts';

/** Where the store, the ledger and the request log are, and the catalog's cache. */

/** $SVC_DATA_HOME, else the system's folder for a program's data. */
export function dataFolder(environment: Environment): string {
  const own = environment['SVC_DATA_HOME'];
  return own ? absolute(own, 'SVC_DATA_HOME') : systemFolder('data');
}

/** With $SVC_DATA_HOME set everything svc keeps is in there, the cache too. */
export function cacheFolder(environment: Environment): string {
  const own = environment['SVC_DATA_HOME'];
  return own ? join(absolute(own, 'SVC_DATA_HOME'), 'cache') : systemFolder('cache');
}

function systemFolder(kind: 'data' | 'cache'): string {
  const folder = envPaths('svc', { suffix: '' })[kind];
  if (isAbsolute(folder)) return resolve(folder);
  const shared = kind === 'data' ? 'XDG_DATA_HOME' : 'XDG_CACHE_HOME';
  const variable = process.env[shared] ? shared : 'HOME';
  throw new FileError(`${variable} is not an absolute path.`, 'Correct it, or set SVC_DATA_HOME.');
}
