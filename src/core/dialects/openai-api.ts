import type { ErrorFacts } from './api.ts';

/** The error shape that both dialects of OpenAI share. */
export function openAiErrorBody({ status, code, message }: ErrorFacts): object {
  return { error: { message, type: errorType(status), param: null, code } };
}

// The provider's own type names: SDKs build their error classes from the status, and clients show
// the type.
function errorType(status: number): string {
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
}
