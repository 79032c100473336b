import type { ServerResponse } from 'node:http';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import type { DialectApi } from '../../../src/core/dialects/apis.ts';
import { ProxyError } from '../../../src/core/errors.ts';
import { errorProviderOf, errorTypeOf } from '../../../src/core/http/gate.ts';
import { headerOf } from '../../../src/core/http/header-rules.ts';
import type { RequestHead } from '../../../src/core/http/http-form.ts';
import { errorDialect, pathOf } from '../../../src/core/http/routes.ts';
import { type FaultCode, faultOf, FAULTS } from '../../../src/core/memory-api/faults.ts';
import type { Reply } from './call.ts';
import { refusalOf, ServiceFault } from './fault.ts';

/** Writes answers. No cache may keep them, except the public keys. An error contains no path, key, prompt or memory. */

const EVERY = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };

export function answerReply(outgoing: ServerResponse, reply: Reply, requestId: string): number {
  const { status = 200, body, contentType = 'application/json', headers = {} } = reply;
  const length = Buffer.byteLength(body);
  outgoing.writeHead(status, {
    ...EVERY,
    // An answer without content has neither a type nor a length.
    ...(status === 204 ? {} : { 'content-type': contentType, 'content-length': length }),
    'x-svc-request-id': requestId,
    ...headers,
  });
  outgoing.end(body);
  return length;
}

/** Bounds of the header Retry-After in seconds. An SDK waits for the stated time before it tries again. */
const RETRY_AFTER = { min: 1, max: 60 } as const;
/** The wait for a client if the fault names none. */
const RETRY_AFTER_MS = 2_000;

/** Answers a call of the memory API or the console with an error. Returns the number of bytes of the body. */
export function answerFault(
  outgoing: ServerResponse,
  fault: ServiceFault,
  { requestId, close }: { readonly requestId: string; readonly close: boolean },
): number {
  const { contractCode: code, message, more } = fault;
  const row: (typeof FAULTS)[FaultCode] = FAULTS[code];
  const body = JSON.stringify(
    faultOf(code, {
      message,
      requestId,
      ...(more.param === undefined ? {} : { param: more.param }),
      ...(more.afterMs === undefined ? {} : { afterMs: Math.ceil(more.afterMs) }),
      ...(more.details === undefined ? {} : { details: more.details }),
    }),
  );
  const headers: Record<string, string | number> = {
    ...EVERY,
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-svc-request-id': requestId,
  };
  if (row.status === 401) headers['www-authenticate'] = 'Bearer';
  if (more.allow !== undefined) headers['allow'] = more.allow;
  if ('shouldRetry' in row) headers['x-should-retry'] = String(row.shouldRetry);
  if (code === 'RATE_LIMIT_EXCEEDED') {
    // The wait for a daily budget may take hours, and an SDK would try again after RETRY_AFTER.max.
    headers['x-should-retry'] = String((more.afterMs ?? 0) <= RETRY_AFTER.max * 1000);
  }
  const isLater = row.retry === 'after_delay' || (row.status === 404 && more.afterMs !== undefined);
  if (isLater) headers['retry-after'] = seconds(more.afterMs);
  if (row.retry === 'same_request' && more.afterMs !== undefined) {
    headers['retry-after-ms'] = more.afterMs;
    headers['retry-after'] = seconds(more.afterMs);
  }
  if (close) headers['connection'] = 'close';
  outgoing.writeHead(row.status, headers);
  outgoing.end(body);
  return Buffer.byteLength(body);
}

function seconds(ms = RETRY_AFTER_MS): string {
  const { min, max } = RETRY_AFTER;
  return String(Math.min(Math.max(Math.ceil(ms / 1000), min), max));
}

/** The status in the log of a call whose client disconnected before the answer. */
export const CLIENT_GONE = 499;

export function errorDialectOf({ target, headers }: RequestHead): Dialect | undefined {
  const isAnthropic = headerOf(headers, 'anthropic-version') !== undefined;
  return errorDialect(pathOf(target), isAnthropic);
}

export interface ErrorContext {
  readonly dialect: Dialect | undefined;
  readonly requestId: string;
  /** True if the request has a receipt, whose id is `requestId`. */
  readonly hasReceipt: boolean;
  readonly evidence: readonly string[];
  readonly close: boolean;
}

interface ModelError {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  readonly service: {
    /** Null if the request has no receipt. */
    readonly receipt_id: string | null;
    readonly retry: { readonly action: string; readonly after_ms?: number };
  };
}

/** Makes an error in the shape that the dialect's SDKs expect. `dialect` is undefined for a path without one. */
export function modelErrorBody(
  dialect: Dialect | undefined,
  { status, code, message, requestId, service }: ModelError,
): object {
  const provider = errorProviderOf(dialect);
  const type = modelErrorType(provider, status);
  const svc = { code, ...service };
  return provider === 'anthropic'
    ? { type: 'error', error: { type, message, svc }, request_id: requestId }
    : { error: { message, type, param: null, code, svc: service } };
}

function modelErrorType(provider: DialectApi['provider'], status: number): string {
  if (status === 429) return 'rate_limit_error';
  if (provider === 'anthropic') {
    return status === 413 ? 'invalid_request_error' : errorTypeOf(provider, status);
  }
  if (status === 409) return 'conflict_error';
  return status >= 500 ? 'api_error' : errorTypeOf(provider, status);
}

/** Answers a model request with an error in the shape of its dialect. */
export function answerModelError(
  outgoing: ServerResponse,
  thrown: unknown,
  context: ErrorContext,
): void {
  const { code, status, retry: action, hint } = refusalOf(thrown);
  const { dialect, requestId, hasReceipt } = context;
  const isFault = thrown instanceof ServiceFault;
  const { allow, afterMs: stated = RETRY_AFTER_MS } = isFault ? thrown.more : {};
  const afterMs = action === 'after_delay' ? stated : undefined;
  const isWorthIt = action === 'same_request' || (afterMs ?? Infinity) <= RETRY_AFTER.max * 1000;
  const said =
    isFault || thrown instanceof ProxyError
      ? thrown.message
      : 'The service failed on this request.';
  const message = `svc: ${said}${hint === undefined ? '' : ` ${hint}`}`;
  const retry = { action, ...(afterMs === undefined ? {} : { after_ms: Math.ceil(afterMs) }) };
  const service = { receipt_id: hasReceipt ? requestId : null, retry };
  const body = JSON.stringify(
    modelErrorBody(dialect, { status, code, message, requestId, service }),
  );
  outgoing.statusCode = status;
  for (let at = 0; at + 1 < context.evidence.length; at += 2) {
    const name = context.evidence[at] ?? '';
    // Keep a header that the handler has already set: it knows more about the request.
    if (!outgoing.hasHeader(name)) outgoing.setHeader(name, context.evidence[at + 1] ?? '');
  }
  const headers = {
    ...EVERY,
    'content-type': 'application/json',
    'x-svc-request-id': requestId,
    // An SDK shows one of these two.
    'request-id': requestId,
    'x-request-id': requestId,
    'x-svc-error-source': 'service',
    'x-svc-error-code': code,
    'x-should-retry': String(isWorthIt),
    ...(hasReceipt ? { 'x-svc-receipt-id': requestId } : {}),
    ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...(allow === undefined ? {} : { allow }),
    ...(afterMs === undefined ? {} : { 'retry-after': seconds(afterMs) }),
    ...(context.close ? { connection: 'close' } : {}),
  };
  for (const [name, value] of Object.entries(headers)) outgoing.setHeader(name, value);
  if (!hasReceipt) outgoing.removeHeader('x-svc-receipt-id');
  outgoing.setHeader('content-length', Buffer.byteLength(body));
  outgoing.end(body);
}
