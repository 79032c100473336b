import { afterAll, beforeAll, describe } from 'vitest';
import { missingPgbouncer, startPgbouncer } from '../support/pgbouncer.ts';
import { missingPostgres } from '../support/postgres.ts';
import { programsOf18 } from '../support/postgres-18.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { serviceStoreSuite } from './service-store-suite.ts';

/** On PostgreSQL 18 where it is installed: the unit tests run the suite on this machine's own one, without a pooler. */

const programs = programsOf18();
const missing = (programs === undefined ? missingPostgres() : undefined) ?? missingPgbouncer();

describe.skipIf(missing !== undefined)('behind a pooler in transaction mode', () => {
  const stores = postgresStores(programs === undefined ? {} : { programs });
  let pooler: Awaited<ReturnType<typeof startPgbouncer>> | undefined;
  beforeAll(async () => {
    pooler = await startPgbouncer(stores.server().port);
  });
  afterAll(() => pooler?.stop());
  serviceStoreSuite('a database of PostgreSQL behind pgbouncer', async () => {
    const address = await stores.address();
    return stores.open({ ...address, host: '127.0.0.1', port: pooler?.port ?? 0 });
  });
});
