import { afterAll, beforeAll } from 'vitest';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import type { ServerAddress } from '../../src/adapters/postgres-store/server-url.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { type PostgresServer, startPostgres, type StartOptions } from './postgres.ts';
import { addressOf } from './postgres-address.ts';

export { addressOf } from './postgres-address.ts';

/** Stores on one PostgreSQL for all tests of a file, each on a database of its own. */

/** A busy machine takes its time: the deadlines have tests of their own. */
const STATEMENT_MS = 30_000;
const HOOK_MS = 180_000;

export interface PostgresStores {
  readonly server: () => PostgresServer;
  /** A new database with all tables. */
  address(): Promise<ServerAddress>;
  open(address?: ServerAddress): Promise<ServiceStore>;
}

export function postgresStores(options: StartOptions = {}): PostgresStores {
  let server: PostgresServer | undefined;
  let template = '';
  const started = (): PostgresServer => {
    if (server === undefined) throw new Error('PostgreSQL was not started.');
    return server;
  };
  beforeAll(async () => {
    server = await startPostgres(options);
    const url = await server.newDatabase();
    const store = openPostgresStore({ server: addressOf(url), migrates: true });
    await store.health();
    // A database that is copied has no connections.
    await store.close();
    template = addressOf(url).database;
  }, HOOK_MS);
  afterAll(() => server?.stop(), HOOK_MS);
  const address = async () => addressOf(await started().newDatabase(template));
  return {
    server: started,
    address,
    open: async (given) =>
      openPostgresStore({ server: given ?? (await address()), statementMs: STATEMENT_MS }),
  };
}
