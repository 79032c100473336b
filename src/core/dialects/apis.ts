import { type Dialect, DIALECTS } from '../conversation/view.ts';

/**
 * The HTTP side of one dialect: its routes, credentials and errors. Commands that clients run often need
 * only this, and must not load the code that reads conversations.
 */
export interface DialectApi {
  readonly name: Dialect;
  /** The name that people use. */
  readonly title: string;
  /** The clients and providers that speak it, for a person who has to choose. */
  readonly speakers: string;
  /** The provider whose API it is. Dialects of one provider usually share an upstream. */
  readonly provider: 'anthropic' | 'openai';

  /** The path of the model route, as every provider's own API has it. */
  readonly modelPath: string;
  /** Further paths of the dialect that clients call. svc relays them untouched. */
  readonly helperPaths: readonly string[];
  /** Clients of this dialect write the version segment into their base URL. */
  readonly baseUrlHasVersion: boolean;
  /** How a provider of this dialect takes its key when the configuration does not say. */
  readonly defaultAuth: 'x-api-key' | 'bearer';
  /** Headers that the provider demands besides the credential. */
  readonly callHeaders: Readonly<Record<string, string>>;
  /** The shape in which the dialect's SDKs expect an error. */
  errorBody(error: ErrorFacts): object;
}

interface ErrorFacts {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  /** Only a service's errors have it. */
  readonly service?: ServiceErrorFacts;
}

interface ServiceErrorFacts {
  /** Null for a caller without a valid key. */
  readonly receipt_id: string | null;
  readonly retry: { readonly action: string; readonly after_ms?: number };
}

/** Anthropic Messages over HTTP. */
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
  errorBody: anthropicErrorBody,
};

/** OpenAI Chat Completions, which many other providers speak too. */
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
  errorBody: openAiErrorBody,
};

/** OpenAI Responses over HTTP. */
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
  errorBody: openAiErrorBody,
};

const APIS: Readonly<Record<Dialect, DialectApi>> = {
  anthropic_messages: MESSAGES_API,
  openai_responses: RESPONSES_API,
  openai_chat_completions: CHAT_API,
};

export const DIALECT_APIS: readonly DialectApi[] = DIALECTS.map(apiOf);

export function apiOf(name: Dialect): DialectApi {
  return APIS[name];
}

function anthropicErrorBody({ status, code, message, requestId, service }: ErrorFacts): object {
  return {
    type: 'error',
    error:
      service === undefined
        ? { type: anthropicErrorType(status), message, code }
        : { type: anthropicServiceType(status), message, svc: { code, ...service } },
    request_id: requestId,
  };
}

// The provider's own type names: SDKs build their error classes from the status, and clients show
// the type.
function anthropicErrorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 413) return 'request_too_large';
  if (status === 503) return 'overloaded_error';
  if (status === 504) return 'timeout_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}

function anthropicServiceType(status: number): string {
  if (status === 413) return 'invalid_request_error';
  return status === 429 ? 'rate_limit_error' : anthropicErrorType(status);
}

/** The error shape that both dialects of OpenAI share. */
function openAiErrorBody({ status, code, message, service }: ErrorFacts): object {
  if (service === undefined) {
    return { error: { message, type: openAiErrorType(status), param: null, code } };
  }
  return { error: { message, type: openAiServiceType(status), param: null, code, svc: service } };
}

function openAiErrorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

function openAiServiceType(status: number): string {
  if (status === 409) return 'conflict_error';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'api_error' : openAiErrorType(status);
}
