import { describe } from 'vitest';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { serviceStoreSuite } from './service-store-suite.ts';

const missing = missingPostgres();

describe.skipIf(missing !== undefined)('on PostgreSQL', () => {
  const stores = postgresStores();
  serviceStoreSuite('a database of PostgreSQL', () => stores.open());
});
