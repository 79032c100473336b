import { tomlString } from '../../core/foreign/shell-quote.ts';
import type { TomlBlock } from '../../core/foreign/toml-block.ts';

/** The provider that svc is for Codex, as lines of TOML. */

export interface CodexProvider {
  /** With /v1. */
  readonly baseUrl: string;
  readonly name: string;
  /**
   * The source of the local token: a command; the variable SVC_LOCAL_PROXY_TOKEN; or the path of
   * the base URL, because Codex knows no command or sends its own login.
   */
  readonly credential:
    | { readonly tokenCommand: readonly string[] }
    | KeyVariable
    | 'variable'
    | 'path'
    | 'login';
}

export interface KeyVariable {
  readonly variable: string;
  /** How a person sets it. */
  readonly instructions: string;
}

const LOCAL_VARIABLE: KeyVariable = {
  variable: 'SVC_LOCAL_PROXY_TOKEN',
  instructions: 'export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"',
};

export function codexTables({ baseUrl, name, credential }: CodexProvider): TomlBlock['tables'] {
  const variable = credential === 'variable' ? LOCAL_VARIABLE : credential;
  const provider = [
    '[model_providers.svc]',
    `name = ${tomlString(name)}`,
    `base_url = ${tomlString(baseUrl)}`,
    'wire_api = "responses"',
    ...(isVariable(variable) ? variableLines(variable) : []),
    ...(credential === 'login' ? ['requires_openai_auth = true'] : []),
    'supports_websockets = false',
  ];
  if (typeof credential === 'string' || isVariable(credential)) return [provider];
  const [command = '', ...args] = credential.tokenCommand;
  const auth = [
    '[model_providers.svc.auth]',
    `command = ${tomlString(command)}`,
    `args = [${args.map(tomlString).join(', ')}]`,
  ];
  return [provider, auth];
}

function isVariable(credential: CodexProvider['credential']): credential is KeyVariable {
  return typeof credential === 'object' && 'variable' in credential;
}

function variableLines({ variable, instructions }: KeyVariable): readonly string[] {
  return [
    `env_key = ${tomlString(variable)}`,
    `env_key_instructions = ${tomlString(instructions)}`,
  ];
}

/** The provider's name that codex shows. */
export const CODEX_NAME = 'svc local proxy';
