import type { Draft } from '../../core/settings/config-draft.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { urlOf } from '../listing.ts';
import { CliError } from '../cli-error.ts';
import { tomlString } from '../../core/foreign/shell-quote.ts';
import type { TomlBlock } from '../../core/foreign/toml-block.ts';

/**
 * Makes what print-config, connect and run use so that a client finds the proxy: environment variables, and for Codex
 * TOML tables.
 */

export type Variables = Readonly<Record<string, string>>;

/**
 * With another base URL, Claude Code searches for MCP tools only if this variable is `true`. Otherwise it puts each
 * tool into the prompt, and a server that connects late changes the prefix to which thinking is bound
 * (code.claude.com/docs/en/env-vars and /prompt-caching, 2026-08-22). The provider must accept `tool_reference` blocks,
 * so svc sets the variable only for Anthropic.
 */
export const TOOL_SEARCH = 'ENABLE_TOOL_SEARCH';

/** Returns TOOL_SEARCH with its value; nothing if the upstream is not Anthropic or the user has set the variable. */
export function toolSearchVariables(
  upstream: Draft | undefined,
  environment: Environment,
): Variables {
  const isSet = environment[TOOL_SEARCH] !== undefined;
  return isAt('api.anthropic.com', upstream) && !isSet ? { [TOOL_SEARCH]: 'true' } : {};
}

/** Says whether the upstream has the provider's own address, and not that of a gateway. */
export function isAt(
  host: 'api.anthropic.com' | 'api.openai.com',
  upstream: Draft | undefined,
): boolean {
  const base = String(upstream?.['baseUrl']);
  return URL.canParse(base) && new URL(base).origin === `https://${host}`;
}

/** Returns the address for a client on this machine. Throws CliError if the port is not fixed. */
export function addressOf({ host, port }: Access): string {
  if (port === 0) {
    throw new CliError(
      'proxy.port is 0, so the port changes at every start.',
      'Set a port: svc setup --yes --port 8765',
    );
  }
  return urlOf({ host, port });
}

/**
 * Returns Claude Code's variables. `authToken`: use ANTHROPIC_AUTH_TOKEN, because Claude Code asks the user before it
 * uses ANTHROPIC_API_KEY.
 */
export function claudeVariables(
  access: Access,
  { environment, authToken }: { readonly environment: Environment; readonly authToken: boolean },
): Variables {
  return {
    // The address has no /v1, because the client adds /v1/messages.
    ANTHROPIC_BASE_URL: addressOf(access),
    [authToken ? 'ANTHROPIC_AUTH_TOKEN' : 'ANTHROPIC_API_KEY']: access.localToken,
    // With this variable the client marks its side calls and compactions in a header.
    CLAUDE_CODE_GATEWAY_HINT_HEADERS: '1',
    ...loopbackVariables(access.host, environment),
  };
}

/**
 * Returns NO_PROXY and no_proxy, extended by this machine's addresses. Without them a client that has a network proxy
 * would send its requests to svc, with the token, to that network proxy.
 */
export function loopbackVariables(host: string, environment: Environment): Variables {
  const direct = ['127.0.0.1', 'localhost', ...(host === '::1' ? ['::1', '[::1]'] : [])];
  const { NO_PROXY: upper, no_proxy: lower } = environment;
  return {
    NO_PROXY: extended(upper ?? lower, direct),
    no_proxy: extended(lower ?? upper, direct),
  };
}

function extended(list: string | undefined, hosts: readonly string[]): string {
  // Leave out entries with control characters, because a shell may evaluate the list.
  const entries = (list ?? '').split(/[\s,]+/).filter((entry) => /^\P{Cc}+$/u.test(entry));
  if (entries.includes('*')) return '*';
  return [...entries, ...hosts.filter((host) => !entries.includes(host))].join(',');
}

/** Variables by which clients send even loopback requests to a network proxy. */
const NAMES = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy'];

/** Returns the variables in NAMES that are set. */
export function proxyVariables(environment: Environment): readonly string[] {
  return NAMES.filter((name) => Boolean(environment[name]));
}

/** Says whether NO_PROXY excludes requests to 127.0.0.1 from the network proxy. */
export function sparesLoopback(environment: Environment): boolean {
  const list = `${environment['NO_PROXY'] ?? ''},${environment['no_proxy'] ?? ''}`;
  const entries = list.split(/[\s,]+/);
  return entries.includes('127.0.0.1') || entries.includes('*');
}

export interface CodexProvider {
  /** The base URL, which ends in /v1. */
  readonly baseUrl: string;
  readonly name: string;
  /**
   * How Codex gets the local token: from a command, from a variable, or in the path of the base URL. 'login': in the
   * path, and Codex sends its own login to the provider.
   */
  readonly credential:
    | { readonly tokenCommand: readonly string[] }
    | { readonly variable: string; readonly instructions: string }
    | 'path'
    | 'login';
}

/** The variable in which a client finds the token, and the command by which the user sets it. */
export const LOCAL_VARIABLE = {
  variable: 'SVC_LOCAL_PROXY_TOKEN',
  instructions: 'export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"',
};

/** The provider's name as Codex shows it. */
export const CODEX_NAME = 'svc local proxy';

/** Returns the tables of svc's provider, as lines of TOML. */
export function codexTables({ baseUrl, name, credential }: CodexProvider): TomlBlock['tables'] {
  const isVariable = typeof credential === 'object' && 'variable' in credential;
  const provider = [
    '[model_providers.svc]',
    `name = ${tomlString(name)}`,
    `base_url = ${tomlString(baseUrl)}`,
    'wire_api = "responses"',
    ...(isVariable
      ? [
          `env_key = ${tomlString(credential.variable)}`,
          `env_key_instructions = ${tomlString(credential.instructions)}`,
        ]
      : []),
    ...(credential === 'login' ? ['requires_openai_auth = true'] : []),
    'supports_websockets = false',
  ];
  if (typeof credential === 'string' || isVariable) return [provider];
  const [command = '', ...args] = credential.tokenCommand;
  const auth = [
    '[model_providers.svc.auth]',
    `command = ${tomlString(command)}`,
    `args = [${args.map(tomlString).join(', ')}]`,
  ];
  return [provider, auth];
}
