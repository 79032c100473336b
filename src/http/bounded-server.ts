import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Connections } from './connections.ts';
import { once } from 'node:events';
import type { RequestHead } from '../core/http/http-form.ts';

/** Bounds on the resources of a listener that a caller may use before it is authenticated. */
export interface ListenerBounds {
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /**
   * Limits in milliseconds: for a request's head; for its head and body; for an idle connection between two requests;
   * and the interval at which Node checks these limits.
   */
  readonly times: {
    readonly head: number;
    readonly request: number;
    readonly keepAlive: number;
    readonly check: number;
  };
}

export function serverOptions({ headerBytesMax, times }: ListenerBounds): ServerOptions {
  return {
    maxHeaderSize: headerBytesMax,
    headersTimeout: times.head,
    requestTimeout: times.request,
    keepAliveTimeout: times.keepAlive,
    connectionsCheckingInterval: times.check,
    // The gate refuses a missing Host header itself, in the form of the client's API.
    requireHostHeader: false,
    insecureHTTPParser: false,
    // Switch off Nagle's algorithm, which delays a small write until the previous one is acknowledged.
    noDelay: true,
  };
}

interface Serving {
  readonly bounds: ListenerBounds;
  readonly connections: Connections;
  /** Answers a request. Never throws. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
}

export function serveWith(server: Server, { bounds, connections, serve }: Serving): void {
  // By default Node silently drops headers beyond some 2,000. svc counts all headers and refuses too many (checkForm).
  server.maxHeadersCount = 0;
  server.maxConnections = bounds.connectionsMax;
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    connections.open(incoming.socket, outgoing);
    // Without a listener, an error on the client's socket would end the process.
    outgoing.on('error', () => outgoing.destroy());
    serve(incoming, outgoing);
  };
  server.on('request', answer);
  // Without these listeners, Node answers an Expect header before svc has checked the request (gate.ts).
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Starts listening and resolves with the address; the system chooses the port if `port` is 0. Rejects with the server's
 * own error (EADDRINUSE, EACCES) if the address is not available. `onRefused` is called if a connection cannot be
 * accepted later; the listener continues.
 */
export async function listenAt(
  server: Server,
  { host, port }: Address,
  onRefused: () => void,
): Promise<{ host: string; port: number }> {
  server.listen({ host, port, exclusive: true });
  await once(server, 'listening');
  server.on('error', onRefused);
  const address = server.address();
  return { host, port: typeof address === 'object' && address !== null ? address.port : port };
}

/** Returns the head of a request as core/http expects it. */
export function requestHead(incoming: IncomingMessage): RequestHead {
  return {
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    httpVersion: incoming.httpVersion,
    headers: incoming.rawHeaders,
  };
}
