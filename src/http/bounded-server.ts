import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Connections } from './connections.ts';
import { once } from 'node:events';
import type { RequestHead } from '../core/http/http-form.ts';

/** The bounds of what anybody may take of a listener before it knows who asks. */
export interface ListenerBounds {
  readonly headerBytesMax: number;
  readonly connectionsMax: number;
  /** In milliseconds: for the head, for head and body, between requests, and between two looks at these. */
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
    // The gate answers these in the client's shape.
    requireHostHeader: false,
    insecureHTTPParser: false,
    // A token must not wait for the acknowledgement of the one before it.
    noDelay: true,
  };
}

interface Serving {
  readonly bounds: ListenerBounds;
  readonly connections: Connections;
  /** Answers, whatever happens. */
  readonly serve: (incoming: IncomingMessage, outgoing: ServerResponse) => void;
}

export function serveWith(server: Server, { bounds, connections, serve }: Serving): void {
  // Node's default of some 2,000 drops what is over it without a word; the gate counts instead.
  server.maxHeadersCount = 0;
  server.maxConnections = bounds.connectionsMax;
  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    connections.open(incoming.socket, outgoing);
    // When the client can take no more of an answer, it ends here; the error must not end the process.
    outgoing.on('error', () => outgoing.destroy());
    serve(incoming, outgoing);
  };
  server.on('request', answer);
  // Without these two Node asks for the body, or refuses, before the gate was asked.
  server.on('checkContinue', answer);
  server.on('checkExpectation', answer);
}

interface Address {
  readonly host: string;
  readonly port: number;
}

/**
 * Listens there; resolves with the port, which the system chooses where 0 was asked for. Throws the
 * server's own error (EADDRINUSE, EACCES) when the address cannot be had. A later error is a
 * connection that could not be accepted: `onRefused` gets it, and the listener lives on.
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

/** The parsed head of a request, as the rules of `core` read it. */
export function requestHead(incoming: IncomingMessage): RequestHead {
  return {
    method: incoming.method ?? '',
    target: incoming.url ?? '',
    httpVersion: incoming.httpVersion,
    headers: incoming.rawHeaders,
  };
}
