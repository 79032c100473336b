import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';
import type { Environment } from '../../core/settings/config-values.ts';
import { isRecord, parseJson, recordOrNone } from '../../core/bytes/json-fields.ts';
import type { Login } from '../../core/http/logins.ts';

/**
 * Reads settings files of coding agents in the user's home, to find out whether they use the proxy and how they are
 * logged in. It never writes them. They contain credentials, so a caller that gets a whole text takes only the values
 * that it looks for.
 */

/** Largest file that is read. Settings have kilobytes; .claude.json, the state of Claude Code, has some megabytes. */
const BYTES_MAX = 16 * 1024 * 1024;

/** A client's own folder: from an environment variable, or else in the home folder. */
export interface ClientFolder {
  readonly variable: string;
  /** The folder's name in the home folder; '' for the home folder itself. */
  readonly name: string;
}

export const CLAUDE_FOLDER: ClientFolder = { variable: 'CLAUDE_CONFIG_DIR', name: '.claude' };
/** The folder in which Claude Code keeps .claude.json. */
export const CLAUDE_STATE: ClientFolder = { variable: 'CLAUDE_CONFIG_DIR', name: '' };
export const CODEX_FOLDER: ClientFolder = { variable: 'CODEX_HOME', name: '.codex' };

/** Reads a client's file; '' if it is missing, too large or no regular file. */
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

/** Reads a file; '' if it is missing, too large or no regular file. */
export function readSmall(file: string): string {
  try {
    const stat = statSync(file);
    return stat.isFile() && stat.size <= BYTES_MAX ? readFileSync(file, 'utf8') : '';
  } catch {
    return '';
  }
}

export function isInstalled(environment: Environment, program: string): boolean {
  return findProgram(environment, program) !== undefined;
}

/** Returns the path of the program in the first folder of $PATH that has it; undefined if none has it. */
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
 * Says whether a client is logged in with a subscription. svc only checks whether a login exists: this function returns
 * no part of a credential, and stores and uses none.
 */
export function hasLogin(environment: Environment, login: Login): boolean {
  return login === 'claude' ? hasClaudeLogin(environment) : codexAuthMode(environment) === 'login';
}

function hasClaudeLogin(environment: Environment): boolean {
  if ((environment['CLAUDE_CODE_OAUTH_TOKEN'] ?? '') !== '') return true;
  const stored = recordOrNone(
    parseJson(readClientFile(environment, CLAUDE_FOLDER, '.credentials.json')),
  );
  if (isRecord(stored?.['claudeAiOauth'])) return true;
  const state = recordOrNone(parseJson(readClientFile(environment, CLAUDE_STATE, '.claude.json')));
  return isRecord(state?.['oauthAccount']);
}

/** Says how Codex is signed in: with a ChatGPT plan, with its own key, or not at all. */
export function codexAuthMode(environment: Environment): 'login' | 'key' | 'none' {
  const stored = recordOrNone(parseJson(readClientFile(environment, CODEX_FOLDER, 'auth.json')));
  if (stored === undefined) return 'none';
  if (stored['auth_mode'] === 'chatgpt' || isRecord(stored['tokens'])) return 'login';
  return typeof stored['OPENAI_API_KEY'] === 'string' ? 'key' : 'none';
}
