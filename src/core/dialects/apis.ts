import type { Dialect } from '../conversation/view.ts';

/**
 * The HTTP side of a dialect: its routes and credentials. Frequent commands need only this, so it must not load the
 * code that reads conversations.
 */
export interface DialectApi {
  readonly name: Dialect;
  /** The name that users know. */
  readonly title: string;
  /** The clients and providers that use the dialect, for a user who has to choose. */
  readonly speakers: string;
  /** The provider that owns the API. Dialects of one provider usually share an upstream. */
  readonly provider: 'anthropic' | 'openai';

  /** The path of svc's model route, whatever the provider's path is. */
  readonly modelPath: string;
  /**
   * Paths for counting tokens and for a compaction. In such requests svc repeats its earlier edits and makes no new
   * ones.
   */
  readonly helperPaths: readonly string[];
  /** True if clients of this dialect put the version segment into their base URL. */
  readonly baseUrlHasVersion: boolean;
  /** How a provider of this dialect takes its key, unless the configuration says otherwise. */
  readonly defaultAuth: 'x-api-key' | 'bearer';
  /** Headers that the provider requires besides the credential. */
  readonly callHeaders: Readonly<Record<string, string>>;
}

export const MESSAGES_API: DialectApi = {
  name: 'anthropic_messages',
  title: 'Anthropic Messages',
  speakers: 'Claude Code and Anthropic SDKs speak it',
  provider: 'anthropic',
  modelPath: '/v1/messages',
  helperPaths: ['/v1/messages/count_tokens'],
  baseUrlHasVersion: false,
  defaultAuth: 'x-api-key',
  callHeaders: { 'anthropic-version': '2023-06-01' },
};

/** Describes OpenAI Chat Completions over HTTP, which many other providers offer too. */
export const CHAT_API: DialectApi = {
  name: 'openai_chat_completions',
  title: 'OpenAI Chat Completions',
  speakers: 'most gateways and local servers',
  provider: 'openai',
  modelPath: '/v1/chat/completions',
  helperPaths: [],
  baseUrlHasVersion: true,
  defaultAuth: 'bearer',
  callHeaders: {},
};

export const RESPONSES_API: DialectApi = {
  name: 'openai_responses',
  title: 'OpenAI Responses',
  speakers: 'Codex speaks it',
  provider: 'openai',
  modelPath: '/v1/responses',
  helperPaths: ['/v1/responses/compact', '/v1/responses/input_tokens'],
  baseUrlHasVersion: true,
  defaultAuth: 'bearer',
  callHeaders: {},
};

const APIS: Readonly<Record<Dialect, DialectApi>> = {
  anthropic_messages: MESSAGES_API,
  openai_responses: RESPONSES_API,
  openai_chat_completions: CHAT_API,
};

export const DIALECT_APIS: readonly DialectApi[] = Object.values(APIS);

export const DIALECTS: readonly Dialect[] = DIALECT_APIS.map(({ name }) => name);

export function apiOf(name: Dialect): DialectApi {
  return APIS[name];
}
