import { describe, expect, onTestFinished, test } from 'vitest';
import { missingPgbouncer } from '../support/pgbouncer.ts';
import { missingPostgres18, programsOf18 } from '../support/postgres-18.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { itemsOf, objectOf, SPACE } from '../support/service-objects.ts';
import { serviceStoreSuite } from './service-store-suite.ts';

/**
 * The whole suite runs on PostgreSQL 18 in `postgres-pooler.test.ts`, through a pooler. So only a short test runs here,
 * without one. SVC_TEST_ENGINES=all runs the whole suite here too.
 */

const missing = missingPostgres18();
const runsSuite = process.env['SVC_TEST_ENGINES'] === 'all' || missingPgbouncer() !== undefined;

describe.skipIf(missing !== undefined)('on PostgreSQL 18', () => {
  const programs = programsOf18();
  const stores = postgresStores(programs === undefined ? {} : { programs });

  test('it is 18, and is written and read without a pooler', async () => {
    const store = await stores.open();
    onTestFinished(() => store.close());
    expect((await store.health()).engine).toMatch(/^PostgreSQL 18\./);
    const objects = [objectOf('The walrus gateway is on port 6431.')];
    const patience = (): AbortSignal => AbortSignal.timeout(60_000);
    const tenant = store.of('default');
    await tenant.capture({ space: SPACE, ifGeneration: undefined, objects, now: 5 }, patience());
    const items = await tenant.listItems(itemsOf({ limit: 10 }), patience());
    expect(items.map(({ text }) => text)).toEqual(['The walrus gateway is on port 6431.']);
  });

  if (runsSuite) serviceStoreSuite('a database of PostgreSQL 18', () => stores.open());
});
