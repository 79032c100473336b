import { formatServiceKey } from '../../src/core/memory-api/service-key.ts';
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { runCli } from './cli.ts';
import { validConfig } from './config.ts';
import { homeWith } from './home.ts';

/** Homes with a set-up in them, right or broken, for doctor to look at. */

export interface Place {
  readonly home: string;
  readonly env?: Record<string, string>;
}

export interface Setup {
  readonly name: string;
  readonly make: () => Place | Promise<Place>;
  readonly level?: 'warning';
  readonly subject: string;
  readonly found: RegExp;
  readonly fix: RegExp;
  /** Its cause is found by asking somebody. */
  readonly isOnline?: true;
  /** --fix takes it away. */
  readonly isMended?: true;
}

export const [UPSTREAM] = validConfig()['upstreams'] as Record<string, unknown>[];

/** A configuration that is right but for these changes; on any port, so that nothing is in its way. */
export function config(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return { ...validConfig(), proxy: { port: 0 }, ...changes };
}

export function upstream(changes: Record<string, unknown>): Record<string, unknown> {
  return config({ upstreams: [{ ...UPSTREAM, ...changes }] });
}

export function configFile(home: string): string {
  return join(home, '.config/svc/config.json');
}

export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

export async function provider(answer: RequestListener): Promise<Place> {
  const port = await listen(createHttpServer(answer));
  const baseUrl = `http://127.0.0.1:${port}`;
  return { home: homeWith(upstream({ baseUrl, allowPrivate: true })) };
}

/** A provider with one model and the right key; `headers` go with each answer. */
export function wellBehaved(headers: Record<string, string> = {}): RequestListener {
  return (request, answer) => {
    answer.sendDate = headers['date'] === undefined;
    answer.writeHead(request.method === 'GET' ? 200 : 400, headers);
    answer.end('{"data":[{"id":"m"}]}');
  };
}

/** A data folder with a store in it, made by svc itself. */
export async function withStore(): Promise<{ home: string; env: { SVC_DATA_HOME: string } }> {
  const home = homeWith(config());
  const env = { SVC_DATA_HOME: join(home, 'data') };
  const { code } = await runCli(['memory', 'add', 'Tests need Docker.'], { home, env });
  expect(code).toBe(0);
  return { home, env };
}

/** Whole, so that only the service can refuse it. */
export const SERVICE_KEY = formatServiceKey(new Uint8Array(8).fill(7), new Uint8Array(32).fill(9));

export async function memoryService(status: number, body: string): Promise<Place> {
  const port = await listen(
    createHttpServer((_, answer) => {
      answer.writeHead(status, { 'content-type': 'application/json' }).end(body);
    }),
  );
  const memory = {
    kind: 'hosted',
    baseUrl: `http://127.0.0.1:${port}`,
    serviceKey: SERVICE_KEY,
  };
  return { home: homeWith(config({ memory, upstreams: [] })) };
}
