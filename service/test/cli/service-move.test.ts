import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openPostgresStore } from '../../src/adapters/postgres-store/postgres-service-store.ts';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import type { ServiceStore } from '../../src/ports/service-store.ts';
import { runServiceHere, SERVICE_BIN, tempFolder } from '../../../test/support/cli.ts';
import { callService } from '../support/memory-service.ts';
import { missingPostgres } from '../support/postgres.ts';
import { addressOf, postgresStores } from '../support/postgres-stores.ts';
import { rowOfReceipt } from '../support/receipt-facts.ts';
import { addTenant } from '../support/service-control.ts';
import { itemsOf, newPurgeId, objectOf, questionTo } from '../support/service-objects.ts';
import { initService, makeServiceKey, runServiceWith } from '../support/service-process.ts';

const missing = missingPostgres();
const FOLDER = '.local/share/svc/service';
// Bounded here; SVC_TEST_KILLS=50 asks for more.
const KILLS = Number(process.env['SVC_TEST_KILLS'] ?? '4');
const RECORDS = 600;
const patience = (): AbortSignal => AbortSignal.timeout(60_000);

describe.skipIf(missing !== undefined)('a service that moves from its file to PostgreSQL', () => {
  const stores = postgresStores();

  /** A service with two tenants, records of every kind, purges, receipts and a ledger. */
  async function usedService(home: string): Promise<string> {
    await initService(home);
    const key = await makeServiceKey(home);
    const store = openServiceStore({
      folder: join(home, FOLDER),
      serves: true,
      creates: false,
      report: () => undefined,
    });
    await addTenant(store, 'acme');
    for (const tenant of ['default', 'acme']) {
      const own = store.of(tenant);
      for (let at = 0; at < RECORDS; at += 50) {
        const objects = Array.from({ length: 50 }, (_, place) =>
          objectOf(`The fact ${at + place} of ${tenant} is marmalade number ${at * 7 + place}.`, {
            role: place % 10 === 9 ? 'tool' : place % 2 === 0 ? 'user' : 'assistant',
            session: `s_${at}`,
            position: place,
            observedAt: 1000 + at + place,
            ...(place % 3 === 0 ? { branch: 'main' } : {}),
            ...(place % 7 === 0 ? { source: 'unverified' as const } : {}),
            ...(place % 2 === 1 && place % 10 !== 9 ? { lastFrom: 4 } : {}),
          }),
        );
        const space = at % 100 === 0 ? 'project/one' : 'project/two';
        // oxlint-disable-next-line no-await-in-loop -- One after the other, each at its time.
        await own.capture({ space, ifGeneration: undefined, objects, now: 5000 + at }, patience());
      }
      const purgeId = newPurgeId();
      const scope = {
        digests: [
          objectOf(`The fact 0 of ${tenant} is marmalade number 0.`, { source: 'unverified' })
            .digest,
        ],
      };
      const order = {
        purgeId,
        space: 'project/one',
        scope,
        isDryRun: false,
        requestedBy: 'k',
        now: 9000,
      };
      // oxlint-disable-next-line no-await-in-loop
      await own.beginPurge(order);
      // oxlint-disable-next-line no-await-in-loop
      while (!(await own.continuePurge(purgeId, 9001)));
      const rows = Array.from({ length: 1200 }, (_, at) => rowOfReceipt({ tenant, seq: at + 1 }));
      // oxlint-disable-next-line no-await-in-loop
      await store.storeReceipts(rows);
      const block = {
        key: 'a',
        block: `words of ${tenant}`,
        form: 'text',
        at: 5,
      } as const;
      // oxlint-disable-next-line no-await-in-loop
      await own.recordLedger([block]);
    }
    await store.close();
    return key;
  }

  /** All that can be seen of a tenant, but for what belongs to a database: generations and ids. */
  async function seen(store: ServiceStore, tenant: string): Promise<unknown> {
    const own = store.of(tenant);
    const every = { spaces: { globs: undefined }, limit: 10_000 };
    const items = await own.listItems(itemsOf(every), patience());
    const outputs = await own.listItems(itemsOf({ ...every, kind: 'tool_output' }), patience());
    const plain = [...items, ...outputs].map(({ provenance, ...item }) =>
      without(['item_id'], { ...item, from: provenance.map((one) => without(['source_id'], one)) }),
    );
    const recalled = await Promise.all(
      ['which fact is marmalade number 357?', 'what is fact 412?'].map(async (text) => {
        const asked = questionTo({
          space: 'project/two',
          otherSpaces: ['project/one'],
          humanText: text,
        });
        return (await own.recall(asked, patience())).items.map((item) => item.text);
      }),
    );
    const sources = await own.listSources({ ...every, offset: 0 }, patience());
    const purges = await own.listPurges({ ...every, offset: 0 }, patience());
    return {
      plain,
      recalled,
      sources: sources.map((source) => without(['source_id'], source)),
      purges: purges.map((purge) => without(['generation_before', 'generation_after'], purge)),
      keys: await own.listKeys(),
      audit: await own.listAudit({ limit: 1000, after: undefined }),
      receipts: await own.listReceipts({ limit: 5000, order: 'asc' }, patience()),
      heads: await own.listHeads({ limit: 100, after: undefined }),
      usage: await own.listUsage({
        from: '2000-01-01',
        to: '2999-12-31',
        groups: ['day'],
        limit: 99,
      }),
      ledger: await own.findLedger(['a']),
      settings: await own.getSettings(),
      providers: await own.listProviders(),
    };
  }

  test(
    'killed at any point it goes on, and everything is there once, as it was',
    { timeout: 300_000 + KILLS * 10_000 },
    async () => {
      const home = tempFolder();
      const key = await usedService(home);
      const url = await stores.server().newDatabase();
      const file = join(home, 'url');
      writeFileSync(file, url, { mode: 0o600 });
      const words = ['move', '--to', `file:${file}`];
      for (let kill = 0; kill < KILLS; kill += 1) {
        const env = { PATH: process.env['PATH'] ?? '', HOME: home };
        const child = spawn(process.execPath, [SERVICE_BIN, ...words], {
          env,
          stdio: ['ignore', 'ignore', 'pipe'],
        });
        const gone = once(child, 'close');
        // Once it has begun to copy, at any time of the second that it takes.
        // oxlint-disable-next-line no-await-in-loop
        await Promise.race([once(child.stderr, 'data'), gone, sleep(1500)]);
        // oxlint-disable-next-line no-await-in-loop
        await sleep(Math.random() * 800);
        child.kill('SIGKILL');
        // oxlint-disable-next-line no-await-in-loop
        await gone;
      }
      const before = openServiceStore({
        folder: join(home, FOLDER),
        serves: false,
        creates: false,
        report: () => undefined,
      });
      const expected = [await seen(before, 'default'), await seen(before, 'acme')];
      const admins = await before.listAdmins(undefined, { limit: 99, after: undefined });
      await before.close();
      const moved = await runServiceHere([...words, '--json'], { home });
      expect(moved.stderr).toContain('each checked');
      const facts = JSON.parse(moved.stdout) as {
        records: number;
        receipts: number;
        unsigned: number;
      };
      expect(facts).toMatchObject({ records: 2 * (RECORDS - 1), receipts: 2400 });
      const after = openPostgresStore({ server: addressOf(url), statementMs: 60_000 });
      onTestFinished(() => after.close());
      expect(await seen(after, 'default')).toEqual(expected[0]);
      expect(await seen(after, 'acme')).toEqual(expected[1]);
      expect(await after.listAdmins(undefined, { limit: 99, after: undefined })).toEqual(admins);
      // What was purged is kept out there too.
      const gone = objectOf('The fact 0 of acme is marmalade number 0.', { source: 'unverified' });
      const batch = { space: 'project/one', ifGeneration: undefined, objects: [gone], now: 1 };
      expect((await after.of('acme').capture(batch, patience())).results).toEqual(['purged']);
      // The settings name the database now, and the key from before works: a capture is known.
      const service = await runServiceWith(home, {});
      const whoami = await callService(service.url, '/v1/svc/whoami', { key });
      expect(whoami.status).toBe(200);
      expect(await service.end('SIGTERM')).toBe(0);
      expect((await runServiceHere(['vault', 'verify'], { home })).code).toBe(0);
      expect(JSON.parse(readFileSync(join(home, FOLDER, 'service.json'), 'utf8'))).toMatchObject({
        database: { from: `file:${file}` },
      });
    },
  );

  test('a database that is half filled starts no service, and another one is not written over', async () => {
    const home = tempFolder();
    await usedService(home);
    const url = await stores.server().newDatabase();
    const { database } = addressOf(url);
    const env = { TARGET: url };
    const move = ['move', '--to', 'env:TARGET'];
    expect((await runServiceHere(move, { home, env })).code).toBe(0);
    // As a killed move leaves it.
    await stores
      .server()
      .run(
        database,
        `UPDATE service_meta SET value = replace(value, 'done', 'running') WHERE name = 'move'`,
      );
    const half = await runServiceHere(['status'], { home, env });
    expect(half.stderr).toContain('run svc-service move again');
    // Another service does not move there.
    const other = tempFolder();
    await initService(other);
    expect((await runServiceHere(move, { home: other, env })).stderr).toContain(
      'already contains another service',
    );
    // A record that was altered on the other side is found.
    await stores.server().run(database, `UPDATE objects SET bytes = 'x' WHERE seq = 7`);
    const wrong = await runServiceHere(move, { home, env });
    expect([wrong.code, wrong.stderr]).toEqual([
      1,
      expect.stringContaining('differs from the file'),
    ]);
  }, 240_000);

  test('R29: an address with a password is no argument', async () => {
    const home = tempFolder();
    await initService(home);
    const { code, stderr } = await runServiceHere(
      ['move', '--to', 'postgres://svc:CANARY@127.0.0.1/x'],
      { home },
    );
    expect([code, stderr]).toEqual([2, expect.stringContaining('Every user can see')]);
    expect(stderr).not.toContain('CANARY');
  }, 60_000);
});

function without(names: readonly string[], value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
}

test('a move without the file of the service says that the file does not exist', async () => {
  const home = tempFolder();
  await initService(home);
  rmSync(join(home, FOLDER, 'service.db'));
  const asked = ['move', '--to', 'command:echo postgres://svc@127.0.0.1/svc'];
  const { code, stderr } = await runServiceHere(asked, { home });
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining("The service's file does not exist."),
  ]);
});
