import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../../adapters/foreign/client-files.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { clientHome } from './client-home.ts';

/** The command with which a client gets the token by itself, whatever shell it was started from. */
export function tokenCommand(environment: Environment, script: string): readonly string[] {
  const words = [...programOf(environment, script), 'config', 'token'];
  const folder = configFolder(environment);
  const isUsual = folder === join(clientHome(environment), '.config', 'svc');
  // Windows has no env; there the client must be started with the same SVC_CONFIG_HOME.
  if (isUsual || process.platform === 'win32') return words;
  return ['env', `SVC_CONFIG_HOME=${folder}`, ...words];
}

/** `svc` where that is this very program: it stays right over an update of Node. */
function programOf(environment: Environment, script: string): readonly string[] {
  const found = findProgram(environment, 'svc');
  const isThis = found !== undefined && realpathOf(found) === realpathOf(script);
  return isThis || process.platform === 'win32' ? ['svc'] : [process.execPath, script];
}

function realpathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
