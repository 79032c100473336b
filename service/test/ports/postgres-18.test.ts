import { describe, expect, onTestFinished, test } from 'vitest';
import { missingPostgres18, programsOf18 } from '../support/postgres-18.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { serviceStoreSuite } from './service-store-suite.ts';

const missing = missingPostgres18();

describe.skipIf(missing !== undefined)('on PostgreSQL 18', () => {
  const programs = programsOf18();
  const stores = postgresStores(programs === undefined ? {} : { programs });

  test('it is 18', async () => {
    const store = await stores.open();
    onTestFinished(() => store.close());
    expect((await store.health()).engine).toMatch(/^PostgreSQL 18\./);
  });

  serviceStoreSuite('a database of PostgreSQL 18', () => stores.open());
});
