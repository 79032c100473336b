import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import type { ServerAddress } from '../../src/adapters/postgres-store/server-url.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { type PostgresServer, startPostgres, urlOf } from './postgres.ts';
import { addressOf } from './postgres-stores.ts';
import { type Balancer, startBalancer } from './tcp-balancer.ts';

/** A real primary with a standby that streams from it, behind a proxy that leads to the primary. */

/** An acknowledged commit is in the log, as on a person's server. */
const DURABLE = ['synchronous_commit=on'];
const WAIT_MS = 60_000;

export interface PostgresPair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** Of the proxy. */
  readonly address: ServerAddress;
  readonly proxy: Balancer;
  readonly database: string;
  /** From now on the proxy leads to the standby. */
  promote(): Promise<void>;
}

export async function startPair({ isSynchronous = true } = {}): Promise<PostgresPair> {
  const primary = await startPostgres({ settings: DURABLE });
  onTestFinished(() => primary.stop());
  const { database } = addressOf(await primary.newDatabase());
  const standby = await startPostgres({ settings: DURABLE, follows: primary });
  onTestFinished(() => standby.stop());
  await until(primary, 'SELECT count(*) FROM pg_stat_replication', '1');
  if (isSynchronous) {
    await setSynchronous(primary, '*');
    await until(primary, 'SELECT max(sync_state) FROM pg_stat_replication', 'sync');
  }
  const proxy = await startBalancer([primary.port]);
  return {
    primary,
    standby,
    address: addressOf(urlOf(proxy.port, database)),
    proxy,
    database,
    promote: async () => {
      proxy.ports = [standby.port];
      await standby.run('postgres', 'SELECT pg_promote()');
    },
  };
}

/** `*`: a commit waits for any standby; '': for none. */
export async function setSynchronous(server: PostgresServer, names: '*' | ''): Promise<void> {
  await server.run('postgres', `ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
  await server.run('postgres', 'SELECT pg_reload_conf()');
  await until(server, 'SHOW synchronous_standby_names', names);
}

export async function until(server: PostgresServer, sql: string, value: string): Promise<void> {
  const end = performance.now() + WAIT_MS;
  // oxlint-disable-next-line no-await-in-loop -- Asked until it is so.
  while ((await server.ask('postgres', sql)) !== value) {
    if (performance.now() > end) throw new Error(`Not so in time: ${sql}`);
    // oxlint-disable-next-line no-await-in-loop
    await sleep(50);
  }
}

/** With the deadlines of a real service. */
export async function openNode(
  address: ServerAddress,
  more: { readonly trustsFailover?: boolean; readonly report?: (line: string) => void } = {},
): Promise<ServiceStore> {
  const store = openPostgresStore({ server: address, migrates: true, ...more });
  onTestFinished(() => store.close());
  await store.health();
  return store;
}
