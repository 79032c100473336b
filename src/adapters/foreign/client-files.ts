import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Environment } from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { Login } from '../../core/http/logins.ts';

/**
 * The settings files of coding agents in the user's home: read to find out whether they point at
 * the proxy, never written. They hold credentials of their own, so svc repeats only the values that
 * it looks for.
 */

/** Settings are kilobytes; Claude Code's state of many projects some megabytes. */
const BYTES_MAX = 16 * 1024 * 1024;

/** A client's own folder: the one that its variable names, else one in the home folder. */
export interface ClientFolder {
  readonly variable: string;
  /** In the home folder; '' for the home folder itself. */
  readonly name: string;
}

export const CLAUDE_FOLDER: ClientFolder = { variable: 'CLAUDE_CONFIG_DIR', name: '.claude' };
/** Where Claude Code keeps .claude.json. */
export const CLAUDE_STATE: ClientFolder = { variable: 'CLAUDE_CONFIG_DIR', name: '' };
export const CODEX_FOLDER: ClientFolder = { variable: 'CODEX_HOME', name: '.codex' };

/** '' if there is no such file, or it is not a settings file. */
export function readClientFile(
  environment: Environment,
  { variable, name }: ClientFolder,
  file: string,
): string {
  const own = environment[variable] ?? '';
  const home = environment['HOME'] ?? '';
  const folder = isAbsolute(own) ? own : join(home, name);
  return isAbsolute(folder) ? readSmall(join(folder, file)) : '';
}

/** '' if there is no such file, or it is not a settings file. */
export function readSmall(file: string): string {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= BYTES_MAX ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  }
}

/** True when the search path has a program of this name. */
export function isInstalled(environment: Environment, program: string): boolean {
  return findProgram(environment, program) !== undefined;
}

/** Where the search path has it first. */
export function findProgram(environment: Environment, program: string): string | undefined {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter(isAbsolute);
  const names = process.platform === 'win32' ? [`${program}.cmd`, `${program}.exe`] : [program];
  const paths = folders.flatMap((folder) => names.map((name) => join(folder, name)));
  return paths.find((path) => isExecutable(path));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/**
 * Whether a client is logged in with a subscription. svc looks at the presence of a login only: nothing
 * of a credential leaves this file, is stored or is used (R46).
 */
export function hasLogin(environment: Environment, login: Login): boolean {
  return login === 'claude' ? hasClaudeLogin(environment) : codexAuthMode(environment) === 'login';
}

function hasClaudeLogin(environment: Environment): boolean {
  if ((environment['CLAUDE_CODE_OAUTH_TOKEN'] ?? '') !== '') return true;
  const stored = parsed(readClientFile(environment, CLAUDE_FOLDER, '.credentials.json'));
  if (isRecord(stored?.['claudeAiOauth'])) return true;
  const state = parsed(readClientFile(environment, CLAUDE_STATE, '.claude.json'));
  return isRecord(state?.['oauthAccount']);
}

/** How Codex is signed in: with a ChatGPT plan, with a key of its own, or not at all. */
export function codexAuthMode(environment: Environment): 'login' | 'key' | 'none' {
  const stored = parsed(readClientFile(environment, CODEX_FOLDER, 'auth.json'));
  if (stored === undefined) return 'none';
  if (stored['auth_mode'] === 'chatgpt' || isRecord(stored['tokens'])) return 'login';
  return typeof stored['OPENAI_API_KEY'] === 'string' ? 'key' : 'none';
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
