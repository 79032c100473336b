import { realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { findProgram } from '../../adapters/foreign/client-files.ts';
import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { scriptPath } from '../context.ts';
import { clientHome } from './client-home.ts';

/**
 * Arguments of svc with which a client gets the token. They also start the proxy if none runs, because a client without
 * a listener waits for a minute, or for ever.
 */
export const TOKEN = ['config', 'token', '--start'] as const;
/** Arguments of svc with which a client starts the proxy if none runs. Nothing is printed on stdout. */
export const START = ['start', '--detach', '--quiet'] as const;

/** Says whether a command line ends with the arguments TOKEN or START. Its program and its variables do not matter. */
export function startsProxy(line: string): boolean {
  return [TOKEN, START].some((args) => line.trimEnd().endsWith(` ${args.join(' ')}`));
}

/** Says whether a settings file contains the arguments TOKEN or START, whatever separates the words. */
export function holdsStart(text: string): boolean {
  return [TOKEN, START].some((args) => new RegExp(args.join(String.raw`\W+`)).test(text));
}

/** Returns the command with which a client, hook or model runs this program with the same configuration and data. */
export function ownCommand(environment: Environment, args: readonly string[]): readonly string[] {
  const words = [...programOf(environment), ...args];
  const folders = ownFolders(environment);
  // On Windows, which has no `env`, the user must start the client with the same variables.
  if (folders.length === 0 || process.platform === 'win32') return words;
  return ['env', ...folders, ...words];
}

export function commandLine(words: readonly string[]): string {
  return words.map((one) => (/^[\w./:=@-]+$/.test(one) ? one : shellQuote(one, 'sh'))).join(' ');
}

/** Returns assignments of the variables with which a command uses the same configuration and memory. */
function ownFolders(environment: Environment): readonly string[] {
  const home = clientHome(environment);
  const config = configFolder(environment);
  const isUsual = config === join(home, '.config', 'svc');
  const assignments = isUsual ? [] : [`SVC_CONFIG_HOME=${config}`];
  const data = dataFolder(environment);
  if (environment['SVC_DATA_HOME']) return [...assignments, `SVC_DATA_HOME=${data}`];
  const usual = join(home, '.local', 'share');
  const shared = resolve(environment['XDG_DATA_HOME'] || usual);
  // XDG_DATA_HOME has no effect if svc's data is not in that folder, as on macOS.
  const isUsed = shared !== usual && dirname(data) === shared;
  return isUsed ? [...assignments, `XDG_DATA_HOME=${shared}`] : assignments;
}

/**
 * Returns the words that start this program: `svc` on Windows, or if that name in the search path is this program;
 * otherwise the paths of Node and of the script. The name stays valid after an update of Node; the paths may not.
 */
function programOf(environment: Environment): readonly string[] {
  const script = scriptPath();
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
