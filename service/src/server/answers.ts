import type { ServerResponse } from 'node:http';
import { FAULTS, type FaultCode, faultOf } from '../../../src/core/memory-api/faults.ts';
import type { Reply } from './call.ts';
import type { ServiceFault } from './fault.ts';

/**
 * The service's answers. No answer is for a web page or a cache; no answer names a path, a key or a
 * text.
 */

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

/** Seconds that an SDK may wait: longer ones it would not keep to. */
const RETRY_AFTER = { min: 1, max: 60 } as const;

/** Bytes of the body. */
export function answerFault(
  outgoing: ServerResponse,
  fault: ServiceFault,
  { requestId, close }: { readonly requestId: string; readonly close: boolean },
): number {
  const { code, message, more } = fault;
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
    // A budget of a day is no reason to try again in a minute.
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

function seconds(ms = 2000): string {
  const { min, max } = RETRY_AFTER;
  return String(Math.min(Math.max(Math.ceil(ms / 1000), min), max));
}
