import { tomlString } from '../../core/foreign/shell-quote.ts';
import type { TomlBlock } from '../../core/foreign/toml-block.ts';

/** The provider that svc is for Codex, as lines of TOML. */

export interface CodexProvider {
  /** With /v1. */
  readonly baseUrl: string;
  readonly name: string;
  /** What prints the token; without it codex reads SVC_LOCAL_PROXY_TOKEN. */
  readonly tokenCommand?: readonly string[];
}

export function codexTables({ baseUrl, name, tokenCommand }: CodexProvider): TomlBlock['tables'] {
  const variable = [
    'env_key = "SVC_LOCAL_PROXY_TOKEN"',
    `env_key_instructions = ${tomlString('export SVC_LOCAL_PROXY_TOKEN="$(svc config token)"')}`,
  ];
  const provider = [
    '[model_providers.svc]',
    `name = ${tomlString(name)}`,
    `base_url = ${tomlString(baseUrl)}`,
    'wire_api = "responses"',
    ...(tokenCommand === undefined ? variable : []),
    'supports_websockets = false',
  ];
  if (tokenCommand === undefined) return [provider];
  const [command = '', ...args] = tokenCommand;
  const auth = [
    '[model_providers.svc.auth]',
    `command = ${tomlString(command)}`,
    `args = [${args.map(tomlString).join(', ')}]`,
  ];
  return [provider, auth];
}

/** What codex shows as the provider's name. */
export const CODEX_NAME = 'svc local proxy';
