import envPaths from 'env-paths';
import { isAbsolute, join, resolve } from 'node:path';
import type { Environment } from '../../core/settings/config-values.ts';
import { FileError } from './file-error.ts';
import { homedir } from 'node:os';

/** Returns $SVC_DATA_HOME, else the system's folder for programs' data. */
export function dataFolder(environment: Environment): string {
  const own = environment['SVC_DATA_HOME'];
  return own ? absolute(own, 'SVC_DATA_HOME') : systemFolder('data');
}

/** Returns the folder of the cache; with $SVC_DATA_HOME it is inside that. */
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

/**
 * Returns the folder of the configuration: $SVC_CONFIG_HOME, else $XDG_CONFIG_HOME/svc, else ~/.config/svc. It is
 * absolute, so it never depends on the current folder: a repository must not be able to configure an upstream.
 */
export function configFolder(environment: Environment): string {
  const own = environment['SVC_CONFIG_HOME'];
  if (own) return absolute(own, 'SVC_CONFIG_HOME');
  const shared = environment['XDG_CONFIG_HOME'];
  // The XDG specification says to ignore a relative path.
  if (shared && isAbsolute(shared)) return resolve(shared, 'svc');
  return join(homeFolder(environment), '.config', 'svc');
}

/** Returns a path from the environment. Throws FileError for a relative one, which depends on the current folder. */
function absolute(path: string, variable: string): string {
  if (isAbsolute(path)) return resolve(path);
  throw new FileError(`${variable} is not an absolute path.`, `Set it to one that starts with /.`);
}

function homeFolder(environment: Environment): string {
  const home = environment['HOME'] || homedir();
  if (isAbsolute(home)) return home;
  throw new FileError(
    'There is no home folder.',
    'Set HOME or SVC_CONFIG_HOME to an absolute path.',
  );
}
