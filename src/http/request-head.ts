import type { IncomingMessage } from 'node:http';

import type { RequestHead } from '../core/http/http-form.ts';

/** The parsed head of a request, as the rules of `core` read it. */
export function requestHead(incoming: IncomingMessage): RequestHead {
  return {
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    httpVersion: incoming.httpVersion,
    headers: incoming.rawHeaders,
  };
}
