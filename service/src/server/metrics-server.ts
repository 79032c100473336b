import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  listenAt,
  type ListenerBounds,
  serverOptions,
  serveWith,
} from '../../../src/http/bounded-server.ts';
import { Connections } from '../../../src/http/connections.ts';
import type { Metrics } from './metrics.ts';

/**
 * Serves metrics on a separate address, which a firewall can hide from callers. It asks for no key,
 * so it serves nothing but counts.
 */

const BOUNDS: ListenerBounds = {
  times: { head: 5000, request: 5000, keepAlive: 60_000, check: 1000 },
  headerBytesMax: 8 << 10,
  connectionsMax: 64,
};

const TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface MetricsServer {
  readonly port: number;
  readonly stop: () => Promise<void>;
}

/** Rejects with Node's own error (`code` EADDRINUSE, EACCES, …) when it cannot listen. */
export async function startMetrics(
  metrics: Metrics,
  address: { readonly host: string; readonly port: number },
): Promise<MetricsServer> {
  const connections = new Connections();
  const server = createServer(serverOptions(BOUNDS));
  server.on('connection', (socket: Socket) => connections.add(socket));
  serveWith(server, {
    bounds: BOUNDS,
    connections,
    serve: (incoming, outgoing) => answer(metrics, incoming, outgoing),
  });
  const { port } = await listenAt(server, address, () => undefined);
  return { port, stop: () => connections.close(server, 0) };
}

function answer(metrics: Metrics, { method, url }: IncomingMessage, outgoing: ServerResponse) {
  const isKnown = url === '/metrics';
  const isAllowed = isKnown && method === 'GET';
  const text = isAllowed ? metrics.text() : '';
  outgoing.writeHead(isAllowed ? 200 : isKnown ? 405 : 404, {
    'content-type': TYPE,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(isKnown && !isAllowed ? { allow: 'GET' } : {}),
  });
  outgoing.end(text);
}
