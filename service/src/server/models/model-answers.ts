import type { ServerResponse } from 'node:http';
import type { Dialect } from '../../../../src/core/conversation/view.ts';
import { apiOf } from '../../../../src/core/dialects/apis.ts';
import { ProxyError, serviceError } from '../../../../src/core/errors.ts';
import {
  FAULTS,
  type FaultCode,
  type RetryAction,
} from '../../../../src/core/memory-api/faults.ts';
import { pathOf } from '../../../../src/core/http/gate.ts';
import { headerOf } from '../../../../src/core/http/header-rules.ts';
import type { RequestHead } from '../../../../src/core/http/http-form.ts';
import { errorDialect } from '../../../../src/core/http/routes.ts';
import { ServiceFault } from '../fault.ts';

/**
 * The errors that a service makes itself on model routes, in the shape that the client's SDK expects.
 * They repeat nothing of the request.
 */

// A path of no dialect is answered in the shape that most programs expect.
const SHAPE_WITHOUT_DIALECT: Dialect = 'openai_chat_completions';

/** SDKs wait no longer than this; a longer wait is for a person. */
const RETRY_SECONDS_MAX = 60;
const RETRY_AFTER_MS = 2_000;

/** The dialect in which an error about this request is written. */
export function errorDialectOf({ target, headers }: RequestHead): Dialect | undefined {
  const isAnthropic = headerOf(headers, 'anthropic-version') !== undefined;
  return errorDialect(pathOf(target), isAnthropic);
}

export interface ErrorContext {
  readonly dialect: Dialect | undefined;
  readonly requestId: string;
  /** A caller with a valid key has a receipt, of the same id. */
  readonly hasReceipt: boolean;
  readonly evidence: readonly string[];
  readonly close: boolean;
}

interface Shown {
  readonly code: string;
  readonly status: number;
  readonly message: string;
  /** Whether the same request may succeed if it is sent again. */
  readonly retry: boolean;
  readonly action: RetryAction;
  readonly afterMs: number | undefined;
  readonly allow: string | undefined;
}

/** Bytes of the body. */
export function answerModelError(
  outgoing: ServerResponse,
  thrown: unknown,
  context: ErrorContext,
): number {
  const shown = shownOf(thrown);
  const { dialect, requestId, hasReceipt } = context;
  const shape = apiOf(dialect ?? SHAPE_WITHOUT_DIALECT);
  const after = shown.afterMs === undefined ? {} : { after_ms: Math.ceil(shown.afterMs) };
  const retry = { action: shown.action, ...after };
  const service = { receipt_id: hasReceipt ? requestId : null, retry };
  const body = JSON.stringify(shape.errorBody({ ...shown, requestId, service }));
  outgoing.statusCode = shown.status;
  for (let at = 0; at + 1 < context.evidence.length; at += 2) {
    const name = context.evidence[at] ?? '';
    // The handler has set what it knows better.
    if (!outgoing.hasHeader(name)) outgoing.setHeader(name, context.evidence[at + 1] ?? '');
  }
  for (const [name, value] of headersOf(shown, context)) outgoing.setHeader(name, value);
  if (!hasReceipt) outgoing.removeHeader('x-svc-receipt-id');
  outgoing.setHeader('content-length', Buffer.byteLength(body));
  outgoing.end(body);
  return Buffer.byteLength(body);
}

function headersOf(shown: Shown, { requestId, hasReceipt, close }: ErrorContext) {
  const headers: [string, string][] = [
    ['content-type', 'application/json'],
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
    ['x-svc-request-id', requestId],
    // SDKs show the id of one of these two.
    ['request-id', requestId],
    ['x-request-id', requestId],
    ['x-svc-error-source', 'service'],
    ['x-svc-error-code', shown.code],
    ['x-should-retry', String(shown.retry)],
  ];
  if (hasReceipt) headers.push(['x-svc-receipt-id', requestId]);
  if (shown.status === 401) headers.push(['www-authenticate', 'Bearer']);
  if (shown.allow !== undefined) headers.push(['allow', shown.allow]);
  if (shown.afterMs !== undefined) headers.push(['retry-after', secondsOf(shown.afterMs)]);
  if (close) headers.push(['connection', 'close']);
  return headers;
}

function secondsOf(ms: number): string {
  return String(Math.min(Math.max(Math.ceil(ms / 1000), 1), RETRY_SECONDS_MAX));
}

function shownOf(thrown: unknown): Shown {
  if (thrown instanceof ServiceFault) return faultShown(thrown);
  const error =
    thrown instanceof ProxyError
      ? thrown
      : new ProxyError('INTERNAL', 'The service failed on this request.');
  const { code, status, retry, hint } = serviceError(error.code);
  const isBusy = status === 503;
  return {
    code,
    status,
    message: `svc: ${error.message} ${hint}`,
    retry,
    action: isBusy ? 'after_delay' : retry ? 'same_request' : 'none',
    afterMs: isBusy ? RETRY_AFTER_MS : undefined,
    allow: undefined,
  };
}

function faultShown({ code, message, more }: ServiceFault): Shown {
  const row: (typeof FAULTS)[FaultCode] = FAULTS[code];
  const isLater = row.retry === 'after_delay';
  const afterMs = isLater ? (more.afterMs ?? RETRY_AFTER_MS) : undefined;
  return {
    code,
    status: row.status,
    message: `svc: ${message}`,
    retry: afterMs !== undefined && afterMs <= RETRY_SECONDS_MAX * 1000,
    action: row.retry,
    afterMs,
    allow: more.allow,
  };
}
