import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { PATHS } from '../../../test/support/dialect-wire.ts';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import {
  type ConsoleCaller,
  consoleOf,
  initModelHome,
  type ModelHome,
  providerBody,
} from './model-process.ts';
import { keyIdOf } from './memory-service.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { runServiceWith, type ServiceProcess } from './service-process.ts';
import { ask, type ClientAnswer } from '../../../test/support/sockets.ts';
import { bytesOf } from '../../../test/support/story.ts';
import { type Balancer, startBalancer } from './tcp-balancer.ts';

/**
 * A service as two processes on one PostgreSQL and one Redis, all of them real, behind a plain TCP
 * balancer. Each node has a folder of its own.
 */
export interface TwoNodes {
  readonly place: ModelHome;
  readonly postgres: PostgresServer;
  readonly redis: RedisServer;
  readonly nodes: ServiceProcess[];
  readonly balancer: Balancer;
  readonly console: ConsoleCaller;
  /** Starts this node, again or for the first time, and puts it behind the balancer. */
  readonly start: (at: number) => Promise<ServiceProcess>;
  readonly makeKey: () => Promise<{ readonly id: string; readonly secret: string }>;
  readonly send: (body: object, options: NodeSendOptions) => Promise<ClientAnswer>;
}

export interface NodeSendOptions {
  readonly key: string;
  /** A port; else it goes through the balancer. */
  readonly to?: number | undefined;
  readonly dialect?: Dialect;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TwoNodesOptions {
  readonly postgresSettings?: readonly string[];
  /** In the address of the database, instead of PostgreSQL's own port. */
  readonly databasePort?: (postgresPort: number) => Promise<number>;
  readonly dialects?: readonly Dialect[];
}

const DIALECT = 'anthropic_messages';
const TRIES = 10;

/** On a busy machine the database may not answer in time; a unit of systemd starts it again, too. */
async function startPatiently(
  home: string,
  environment: Readonly<Record<string, string>>,
): Promise<ServiceProcess> {
  for (let tries = 1; ; tries += 1) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- The next try follows a failed one.
      return await runServiceWith(home, environment, '--quiet');
    } catch (error) {
      if (tries === TRIES) throw error;
      // oxlint-disable-next-line no-await-in-loop
      await sleep(1000);
    }
  }
}

export async function startTwoNodes(options: TwoNodesOptions = {}): Promise<TwoNodes> {
  const { postgresSettings = [], dialects = [DIALECT] } = options;
  const postgres = await startPostgres({ settings: postgresSettings });
  onTestFinished(() => postgres.stop());
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const address = new URL(await postgres.newDatabase());
  if (options.databasePort !== undefined) {
    address.port = String(await options.databasePort(postgres.port));
  }
  const place = await initModelHome(address.href, {
    environment: { SVC_REDIS_URL: redis.url },
    // A machine that runs many tests at once may need longer than a person should wait.
    // Without an address of its own a service leaves no tool output out.
    settings: { recallMs: 5000, publicUrl: 'https://svc.example' },
  });
  // The pepper and the master key are the same on both; journals are each one's own.
  const second = join(place.home, 'svc-1');
  cpSync(place.folder, second, { recursive: true });
  const folders = [place.folder, second];
  const nodes: ServiceProcess[] = [];
  const balancer = await startBalancer([]);
  const start = async (at: number): Promise<ServiceProcess> => {
    const environment = { ...place.environment, SVC_SERVICE_HOME: folders[at] ?? '' };
    const node = await startPatiently(place.home, environment);
    nodes[at] = node;
    balancer.ports = nodes.map(({ port }) => port);
    return node;
  };
  await start(0);
  await start(1);
  const console: ConsoleCaller = (...call) =>
    consoleOf({ url: nodes[0]?.url ?? '' }, place.token)(...call);
  for (const dialect of dialects) {
    // oxlint-disable-next-line no-await-in-loop
    await console('POST providers', providerBody(dialect, place.baseUrl));
  }
  return {
    place,
    postgres,
    redis,
    nodes,
    balancer,
    console,
    start,
    makeKey: async () => {
      const scopes = ['read', 'write', 'receipt:read'];
      const { json } = await console('POST keys', { name: 'n', scopes });
      const secret = String(json.secret);
      return { id: keyIdOf(secret), secret };
    },
    send: (body, { key, to = balancer.port, dialect = DIALECT, headers = {} }) =>
      ask(to, {
        path: PATHS[dialect],
        headers: [
          'authorization',
          `Bearer ${key}`,
          'content-type',
          'application/json',
          ...Object.entries(headers).flat(),
        ],
        body: bytesOf(body),
      }),
  };
}
