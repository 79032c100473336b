import type { ServerResponse } from 'node:http';

/** Aborts when the client's connection is gone or its answer is done: either way nobody waits any more. */
export function goneSignal(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (outgoing.destroyed) gone.abort();
  else outgoing.once('close', () => gone.abort());
  return gone.signal;
}
