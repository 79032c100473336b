import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { ClientFolder } from '../../adapters/foreign/client-files.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';

/** The folder in which several clients have a folder for their settings. */
export const CONFIG_FOLDER: ClientFolder = { variable: 'XDG_CONFIG_HOME', name: '.config' };

export function clientHome(environment: Environment): string {
  const home = environment['HOME'] || homedir();
  if (isAbsolute(home)) return home;
  throw new CliError('There is no home folder.', 'Set HOME to an absolute path.');
}

/** Returns the absolute folder in the client's environment variable, or else the usual one in the home folder. */
export function clientFolder(environment: Environment, { variable, name }: ClientFolder): string {
  const own = environment[variable] ?? '';
  return isAbsolute(own) ? own : join(clientHome(environment), name);
}
