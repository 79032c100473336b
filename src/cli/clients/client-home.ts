import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';
import type { Environment } from '../../core/settings/config-values.ts';
import { CliError } from '../cli-error.ts';

/** Where clients keep their settings. */
export function clientHome(environment: Environment): string {
  const home = environment['HOME'] || homedir();
  if (isAbsolute(home)) return home;
  throw new CliError('There is no home folder.', 'Set HOME to an absolute path.');
}
