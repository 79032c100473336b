import { isRecord } from '../../core/bytes/json-fields.ts';
import type { Login } from '../../core/http/logins.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { readClientFile } from './client-files.ts';

/**
 * Whether a client is logged in with a subscription. svc looks at the presence of a login only: nothing
 * of a credential leaves this file, is stored or is used (R46).
 */
export function hasLogin(environment: Environment, login: Login): boolean {
  return login === 'claude' ? hasClaudeLogin(environment) : codexAuthMode(environment) === 'login';
}

const CLAUDE = { variable: 'CLAUDE_CONFIG_DIR', name: '.claude' };
const CLAUDE_STATE = { variable: 'CLAUDE_CONFIG_DIR', name: '' };
const CODEX = { variable: 'CODEX_HOME', name: '.codex' };

function hasClaudeLogin(environment: Environment): boolean {
  if ((environment['CLAUDE_CODE_OAUTH_TOKEN'] ?? '') !== '') return true;
  const stored = parsed(readClientFile(environment, CLAUDE, '.credentials.json'));
  if (isRecord(stored?.['claudeAiOauth'])) return true;
  const state = parsed(readClientFile(environment, CLAUDE_STATE, '.claude.json'));
  return isRecord(state?.['oauthAccount']);
}

/** How Codex is signed in: with a ChatGPT plan, with a key of its own, or not at all. */
export function codexAuthMode(environment: Environment): 'login' | 'key' | 'none' {
  const stored = parsed(readClientFile(environment, CODEX, 'auth.json'));
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
