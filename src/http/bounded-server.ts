import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Connections } from './connections.ts';
import { once } from 'node:events';
import type { RequestHead } from '../core/http/http-form.ts';

/** Bounds on what any caller may use of a listener before it is authenticated. */
export interface ListenerBounds {
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /** Limits in milliseconds: for the head, for head and body, between requests, and between two checks. */
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
    // Send small writes at once: a token of an answer must not wait for the acknowledgement of the previous one.
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
  // Node's default of some 2,000 silently drops further headers; the gate counts them instead.
  server.maxHeadersCount = 0;
  server.maxConnections = bounds.connectionsMax;
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    connections.open(incoming.socket, outgoing);
    // If the client can no longer receive, end its answer; the error must not end the process.
    outgoing.on('error', () => outgoing.destroy());
    serve(incoming, outgoing);
  };
  server.on('request', answer);
  // Without these two listeners Node asks for the body, or refuses the request, before the gate has checked it.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Starts listening and resolves with the port, which the system chooses for 0. Throws the server's own error
 * (EADDRINUSE, EACCES) if the address is not available. A later error is a connection that could not be accepted:
 * `onRefused` gets it, and the listener continues.
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

/** Returns the parsed head of a request, in the form that `core` uses. */
export function requestHead(incoming: IncomingMessage): RequestHead {
  return {
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    httpVersion: incoming.httpVersion,
    headers: incoming.rawHeaders,
  };
}
