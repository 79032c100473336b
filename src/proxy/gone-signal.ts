import type { ServerResponse } from 'node:http';

// One object for all: an abort without a reason makes a DOMException with its stack, 20 us each.
const GONE = new Error('The client has gone.');

/** Aborts when the client hangs up before its answer is whole. */
export function goneSignal(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (outgoing.destroyed) gone.abort(GONE);
  else {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) gone.abort(GONE);
    });
  }
  return gone.signal;
}
