import { asRecord, isRecord } from '../bytes/json-fields.ts';

/**
 * Small parsers for the configuration. Each takes an external value and either returns it typed or notes a problem, so
 * that one pass reports all problems. A problem quotes only short words and numbers, because a longer value in the
 * wrong place may be a key.
 */

export interface Problem {
  /** The place in the file: 'proxy.port', 'upstreams[0].baseUrl', or 'config' for the whole. */
  readonly path: string;
  /** The source that overrode the file: 'SVC_PORT', '--port'; undefined if the error is in the file. */
  readonly origin?: string;
  /** What was found, described so that it quotes no key. */
  readonly found: string;
  /** The allowed values, as the rest of the sentence 'expected …'. */
  readonly allowed: string;
  /**
   * The environment variable that the value names, if that variable holds no valid key. Undefined if the name may
   * itself be a misplaced key.
   */
  readonly variable?: string;
  /** True if the variable `variable` is not set at all. */
  readonly isUnset?: boolean;
}

/** Writes `proxy.port (SVC_PORT): expected a whole number from 0 to 65535, found text`. */
export function problemText(problem: Problem): string {
  const origin = problem.origin === undefined ? '' : ` (${problem.origin})`;
  return `${problem.path}${origin}: expected ${problem.allowed}, found ${problem.found}`;
}

export class Findings {
  readonly problems: Problem[] = [];
  readonly warnings: Problem[] = [];

  problem(path: string, value: unknown, allowed: string): void {
    this.problems.push({ path, found: describe(value), allowed });
  }

  /** Returns a setting that is true or false; `fallback` if it is missing or invalid. */
  flag(path: string, value: unknown, fallback: boolean): boolean {
    if (typeof value === 'boolean') return value;
    if (value !== undefined) this.problem(path, value, 'true or false');
    return fallback;
  }

  /** Notes that the value is valid, but the content of the variable that it names is not. */
  variableProblem(
    path: string,
    variable: string,
    { found, allowed, isUnset }: Pick<Problem, 'found' | 'allowed' | 'isUnset'>,
  ): void {
    this.problems.push({
      path,
      found,
      allowed: `${allowed} in ${variableText(variable)}`,
      ...(isUnset === undefined ? {} : { isUnset }),
      ...(isShown(variable) ? { variable } : {}),
    });
  }

  /** Warns of each unknown key, because it may be a mistyped setting. */
  warnUnknown(path: string, value: object, known: readonly string[]): void {
    for (const [index, key] of Object.keys(value).entries()) {
      if (known.includes(key)) continue;
      const allowed = `one of ${known.join(', ')}`;
      this.warnings.push({
        path: memberPath(path, key, index),
        found: 'an unknown setting',
        allowed,
      });
    }
  }
}

/** Names a member. A key that does not look like a word is given by its index, because it may be a misplaced secret. */
export function memberPath(path: string, key: string, index: number): string {
  const name = /^[A-Za-z_-]{1,32}$/.test(key) ? `.${key}` : `[${index}]`;
  return path === 'config' ? name.replace(/^\./, '') : `${path}${name}`;
}

export function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return describeText(value);
  return Array.isArray(value) ? `a list of ${value.length}` : 'an object';
}

// Describes a value for a message. It shows short words and numbers, which help to find typing errors and cannot be
// keys; anything else might be a key.
function describeText(text: string): string {
  if (text === '') return 'an empty text';
  if (/^[A-Za-z_-]{1,20}$/.test(text) || /^[\d.:]{1,15}$/.test(text)) return `"${text}"`;
  return `a text of ${text.length} characters`;
}

// RFC 9110: field values are visible ASCII, spaces, tabs, and bytes above them. CR, LF and NUL split or cut a header;
// non-latin1 characters cannot be sent at all.
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;
/** Keys of providers are visible ASCII; a space or an accent is a copying mistake. */
const CREDENTIAL = /^[\u0021-\u007e]{1,8192}$/;
const ENVIRONMENT_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function isHeaderValue(value: unknown): value is string {
  return typeof value === 'string' && HEADER_VALUE.test(value);
}

export function isCredential(value: unknown): value is string {
  return typeof value === 'string' && CREDENTIAL.test(value);
}

export function isEnvironmentName(value: unknown): value is string {
  return typeof value === 'string' && ENVIRONMENT_NAME.test(value);
}

/** Returns a key's end: enough to recognise a known key, and useless to others. */
export function keyEnd(key: string): string {
  // Show four characters of a key that has at least 24, and none of a shorter key.
  return key.length >= 24 ? `…${key.slice(-4)}` : '…';
}

export type Environment = Readonly<Record<string, string | undefined>>;

const CREDENTIAL_FORMS =
  'a key of visible ASCII characters, or {"env": "NAME"} with the name of an environment variable';

/** Returns the credential itself, from the file or a variable; undefined if it cannot be read. */
export function readCredential(
  value: unknown,
  at: { readonly path: string; readonly environment: Environment },
  findings: Findings,
): string | undefined {
  if (isCredential(value)) return value;
  const name = namedVariable(value);
  if (name === undefined) {
    findings.problem(at.path, value, CREDENTIAL_FORMS);
    return undefined;
  }
  if (isRecord(value)) findings.warnUnknown(at.path, value, ['env']);
  const held = at.environment[name];
  if (isCredential(held)) return held;
  const isUnset = held === undefined || held === '';
  const found = isUnset ? 'nothing' : 'a text with spaces or characters that no key has';
  findings.variableProblem(at.path, name, { found, allowed: 'a key', isUnset });
  return undefined;
}

/** Returns the variable that a credential names; undefined for one that is written out. */
export function namedVariable(credential: unknown): string | undefined {
  const name = asRecord(credential)['env'];
  return isEnvironmentName(name) ? name : undefined;
}

export function variableText(name: string): string {
  return isShown(name) ? `$${name}` : 'the environment variable that it names';
}

// Names of variables are usually upper case; anything else may be a misplaced key.
function isShown(name: string): boolean {
  return /^[A-Z][A-Z0-9_]*$/.test(name);
}
