import { describe, expect, onTestFinished, test } from 'vitest';
import type { TenantStore } from '../../src/ports/service-store.ts';
import { missingPostgres } from '../support/postgres.ts';
import { postgresStores } from '../support/postgres-stores.ts';
import { newPurgeId, objectOf, questionTo, SPACE } from '../support/service-objects.ts';

const missing = missingPostgres();
const patience = (): AbortSignal => AbortSignal.timeout(60_000);

describe.skipIf(missing !== undefined)('counts of words in PostgreSQL', () => {
  const stores = postgresStores();

  async function keep(store: TenantStore, from: number, count: number): Promise<void> {
    const objects = Array.from({ length: count }, (_, at) =>
      objectOf(`The marmalade number ${from + at} stands on shelf ${(from + at) % 7}.`),
    );
    const batch = { space: SPACE, ifGeneration: undefined, objects, now: 5 };
    await store.capture(batch, patience());
  }

  test('a frequent word is counted once for all nodes, until its space grew by a tenth', async () => {
    const address = await stores.address();
    const [one, other] = await Promise.all([stores.open(address), stores.open(address)]);
    onTestFinished(async () => {
      await Promise.all([one.close(), other.close()]);
    });
    const ask = (sql: string) => stores.server().ask(address.database, sql);
    const known = () =>
      ask(`SELECT string_agg(passages || ':' || found, ' ' ORDER BY found) FROM
      (SELECT DISTINCT passages, found FROM word_counts WHERE tenant_id = 'default') w`);
    const recall = async (store: TenantStore) => {
      const asked = questionTo({ humanText: 'Where does marmalade number 41 stand?' });
      return (await store.recall(asked, patience())).items[0]?.text;
    };
    const [own, foreign] = [one.of('default'), one.of('acme')];
    await keep(own, 0, 300);
    await keep(foreign, 0, 300);
    const found = 'The marmalade number 41 stands on shelf 6.';
    expect(await recall(own)).toBe(found);
    await expect.poll(known).toBe('300:300');
    // Nothing of another tenant is counted before it asks, and words of less than 256 never are.
    expect(await ask(`SELECT count(*) FROM word_counts WHERE tenant_id <> 'default'`)).toBe('0');
    await keep(own, 300, 20);
    expect(await recall(other.of('default'))).toBe(found);
    expect(await known()).toBe('300:300');
    await keep(own, 320, 20);
    expect(await recall(other.of('default'))).toBe(found);
    await expect.poll(known).toBe('340:340');
    const order = { space: SPACE, scope: { before: '2000-01-01T00:00:00Z' }, isDryRun: false };
    const purgeId = newPurgeId();
    await own.beginPurge({ ...order, purgeId, requestedBy: 'k', now: 6 });
    while (!(await own.continuePurge(purgeId, 7)));
    // Counts tell of what is purged, too.
    expect(await ask('SELECT count(*) FROM word_counts')).toBe('0');
  }, 120_000);
});
