import type { DialectApi, ErrorFacts } from '../api.ts';

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
  errorBody,
};

function errorBody({ status, code, message, requestId, service }: ErrorFacts): object {
  return {
    type: 'error',
    error:
      service === undefined
        ? { type: errorType(status), message, code }
        : { type: serviceType(status), message, svc: { code, ...service } },
    request_id: requestId,
  };
}

// The provider's own type names: SDKs build their error classes from the status, and clients show
// the type.
function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 404) return 'not_found_error';
  if (status === 413) return 'request_too_large';
  if (status === 503) return 'overloaded_error';
  if (status === 504) return 'timeout_error';
  return status >= 500 ? 'api_error' : 'invalid_request_error';
}

function serviceType(status: number): string {
  if (status === 413) return 'invalid_request_error';
  return status === 429 ? 'rate_limit_error' : errorType(status);
}
