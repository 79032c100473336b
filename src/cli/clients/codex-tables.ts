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
  readonly credential: { readonly tokenCommand: readonly string[] } | 'variable' | 'path' | 'login';
}

export function codexTables({ baseUrl, name, credential }: CodexProvider): TomlBlock['tables'] {
  const variable = [
    'env_key = "SVC_LOCAL_PROXY_TOKEN"',
    `env_key_instructions = ${tomlString('export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"')}`,
  ];
  const provider = [
    '[model_providers.svc]',
    `name = ${tomlString(name)}`,
    `base_url = ${tomlString(baseUrl)}`,
    'wire_api = "responses"',
    ...(credential === 'variable' ? variable : []),
    ...(credential === 'login' ? ['requires_openai_auth = true'] : []),
    'supports_websockets = false',
  ];
  if (typeof credential === 'string') return [provider];
  const [command = '', ...args] = credential.tokenCommand;
  const auth = [
    '[model_providers.svc.auth]',
    `command = ${tomlString(command)}`,
    `args = [${args.map(tomlString).join(', ')}]`,
  ];
  return [provider, auth];
}

/** The provider's name that codex shows. */
export const CODEX_NAME = 'svc local proxy';
