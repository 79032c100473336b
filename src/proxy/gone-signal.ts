import type { ServerResponse } from 'node:http';

// One object for all: an abort without a reason makes a DOMException with its stack, 20 us each.
const GONE = new Error('The client has gone.');

/** The body's reader and the handler ask for the same one: to make one takes 20 us. */
const SIGNALS = new WeakMap<ServerResponse, AbortSignal>();

/** Aborts when the client hangs up before its answer is whole. */
export function goneSignal(outgoing: ServerResponse): AbortSignal {
  const known = SIGNALS.get(outgoing);
  if (known !== undefined) return known;
  const gone = new AbortController();
  SIGNALS.set(outgoing, gone.signal);
  if (outgoing.destroyed) gone.abort(GONE);
  else {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) gone.abort(GONE);
    });
  }
  return gone.signal;
}
