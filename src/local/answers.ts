import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Dialect } from '../core/conversation/view.ts';
import type { ProxyError } from '../core/errors.ts';
import { errorBody } from '../core/http/gate.ts';

/**
 * The facts for an error answer. svc makes such an answer in the form of the client's API. The answer contains no path,
 * header or body of the request, and no Access-Control-* header, because no page of another site may read it.
 */
export interface ErrorContext {
  readonly dialect: Dialect | undefined;
  readonly requestId: string;
  readonly version: string;
  /** The methods for the Allow header of a METHOD_NOT_ALLOWED. */
  readonly allow: string;
  /** Evidence headers: names and values in turn. Those that the handler has already set are more exact, and stay. */
  readonly evidence: readonly string[];
}

export function answerError(
  outgoing: ServerResponse,
  error: ProxyError,
  context: ErrorContext & { readonly close: boolean },
): void {
  const answer = makeErrorAnswer(error, context);
  outgoing.statusCode = answer.status;
  for (const [name, value] of pairsOf(context.evidence)) {
    if (!outgoing.hasHeader(name)) outgoing.setHeader(name, value);
  }
  for (const [name, value] of answer.headers) outgoing.setHeader(name, value);
  if (context.close) outgoing.setHeader('connection', 'close');
  outgoing.end(answer.body);
}

/** Returns an error answer as text, for a socket without a ServerResponse. The answer closes the connection. */
export function writeErrorAnswer(error: ProxyError, context: ErrorContext): string {
  const answer = makeErrorAnswer(error, context);
  const lines = [
    `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}`,
    ...[...new Map([...pairsOf(context.evidence), ...answer.headers])].map(
      ([name, value]) => `${name}: ${value}`,
    ),
    'connection: close',
  ];
  return `${lines.join('\r\n')}\r\n\r\n${answer.body}`;
}

/** Answers a call that svc itself serves. No such answer may be cached. */
export function answerJson(
  outgoing: ServerResponse,
  value: object,
  { status = 200, headers = {} }: { status?: number; headers?: Record<string, string> } = {},
): void {
  const body = Buffer.from(JSON.stringify(value));
  outgoing.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...headers,
  });
  outgoing.end(body);
}

function makeErrorAnswer(error: ProxyError, context: ErrorContext) {
  const body = errorBody(error, context.dialect, context.requestId);
  const headers: [string, string][] = [
    ['content-type', 'application/json'],
    ['content-length', String(Buffer.byteLength(body))],
    ['x-svc-local-proxy', context.version],
    ['x-svc-request-id', context.requestId],
    ['x-svc-error-source', 'proxy'],
    ['x-svc-error-code', error.code],
    ['x-should-retry', String(error.retry)],
    ['x-content-type-options', 'nosniff'],
  ];
  if (error.code === 'LOCAL_TOKEN_INVALID') headers.push(['www-authenticate', 'Bearer']);
  if (error.code === 'TOO_BUSY') headers.push(['retry-after', '1']);
  if (error.code === 'METHOD_NOT_ALLOWED') headers.push(['allow', context.allow]);
  return { status: error.status, headers, body };
}

function pairsOf(flat: readonly string[]): readonly (readonly [string, string])[] {
  return flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1] ?? ''] as const] : []));
}
