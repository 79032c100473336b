import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import {
  Connections,
  listenAt,
  type ListenerBounds,
  serverOptions,
  serveWith,
} from '../../../src/http/bounded-server.ts';
import type { CallRow } from './parts.ts';

/** Counts calls and writes the counts in Prometheus's format. No label names a tenant, a key, a space or a model. */

/** Upper bounds of the histogram's buckets in seconds, from a key look-up to a long answer of a model. */
const BOUNDS = [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 60, 300] as const;

interface Series {
  readonly counts: number[];
  sum: number;
  count: number;
}

/** A number that is read when the metrics are requested. */
export interface Gauge {
  readonly name: string;
  readonly help: string;
  readonly read: () => number;
}

export class Metrics {
  readonly #calls = new Map<string, number>();
  readonly #times = new Map<string, Series>();
  readonly #gauges: readonly Gauge[];

  constructor(gauges: readonly Gauge[]) {
    this.#gauges = gauges;
  }

  /** Counts a call. Operations come from closed tables of routes, so the number of labels is bounded. */
  count({ operation = 'none', status, code = '', ms }: CallRow): void {
    const labels = `operation="${operation}",status="${status}",code="${code}"`;
    this.#calls.set(labels, (this.#calls.get(labels) ?? 0) + 1);
    const series = this.#times.get(operation) ?? { counts: BOUNDS.map(() => 0), sum: 0, count: 0 };
    this.#times.set(operation, series);
    const seconds = ms / 1000;
    for (const [at, bound] of BOUNDS.entries()) {
      if (seconds <= bound) series.counts[at] = (series.counts[at] ?? 0) + 1;
    }
    series.sum += seconds;
    series.count += 1;
  }

  text(): string {
    const calls = [...this.#calls].map(([labels, count]) => `svc_calls_total{${labels}} ${count}`);
    const times = [...this.#times].flatMap(([operation, series]) => linesOf(operation, series));
    const gauges = this.#gauges.flatMap(({ name, help, read }) => [
      ...headOf(name, help, 'gauge'),
      `${name} ${read()}`,
    ]);
    return [
      ...headOf('svc_calls_total', 'Calls that were answered.', 'counter'),
      ...calls,
      ...headOf('svc_call_seconds', 'Time from the head of a call to its end.', 'histogram'),
      ...times,
      ...gauges,
      '',
    ].join('\n');
  }
}

function linesOf(operation: string, { counts, sum, count }: Series): readonly string[] {
  const label = `operation="${operation}"`;
  return [
    ...BOUNDS.map((bound, at) => `svc_call_seconds_bucket{${label},le="${bound}"} ${counts[at]}`),
    `svc_call_seconds_bucket{${label},le="+Inf"} ${count}`,
    `svc_call_seconds_sum{${label}} ${sum}`,
    `svc_call_seconds_count{${label}} ${count}`,
  ];
}

function headOf(name: string, help: string, type: string): readonly string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

const LISTENER_BOUNDS: ListenerBounds = {
  times: { head: 5000, request: 5000, keepAlive: 60_000, check: 1000 },
  headerBytesMax: 8 << 10,
  connectionsMax: 64,
};

/**
 * Serves the metrics without a key, on an address of their own that a firewall can hide. Rejects with Node's own error
 * (`code` EADDRINUSE, EACCES, …) if it cannot listen.
 */
export async function startMetrics(
  metrics: Metrics,
  address: { readonly host: string; readonly port: number },
) {
  const connections = new Connections();
  const server = createServer(serverOptions(LISTENER_BOUNDS));
  server.on('connection', (socket: Socket) => connections.add(socket));
  serveWith(server, {
    bounds: LISTENER_BOUNDS,
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
    'content-type': 'text/plain; version=0.0.4; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...(isKnown && !isAllowed ? { allow: 'GET' } : {}),
  });
  outgoing.end(text);
}
