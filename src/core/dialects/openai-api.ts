import type { ErrorFacts } from './api.ts';

/** The error shape that both dialects of OpenAI share. */
export function openAiErrorBody({ status, code, message, service }: ErrorFacts): object {
  if (service === undefined) {
    return { error: { message, type: errorType(status), param: null, code } };
  }
  return { error: { message, type: serviceType(status), param: null, code, svc: service } };
}

// The provider's own type names: SDKs build their error classes from the status, and clients show
// the type.
function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}

function serviceType(status: number): string {
  if (status === 409) return 'conflict_error';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'api_error' : errorType(status);
}
