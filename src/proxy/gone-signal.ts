import type { ServerResponse } from 'node:http';

/** Aborts when the client hangs up before its answer is whole. */
export function goneSignal(outgoing: ServerResponse): AbortSignal {
  const controller = new AbortController();
  const abort = (): void => controller.abort(new Error('The client has gone.'));
  if (outgoing.destroyed) abort();
  else {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) abort();
    });
  }
  return controller.signal;
}
