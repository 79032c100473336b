import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { dropExpired, expiry } from '../../src/server/jobs.ts';
import { openConsole } from '../support/console.ts';
import { rowOfReceipt } from '../support/receipt-facts.ts';

const DAY = 86_400_000;

test('receipts go when the plan of their tenant keeps them no longer, in its own tenant alone', async () => {
  const { ask, clock, service } = await openConsole();
  const { store } = service;
  await ask('POST plans', { name: 'short', limits: { retention_days: 2 } });
  await ask('POST tenants', { tenant_id: 'acme', plan: 'short' });
  for (const tenant of ['acme', 'default']) {
    const rows = [0, 1, 3, 9].map((days, at) =>
      rowOfReceipt({ tenant, seq: at + 1, at: clock.now() - days * DAY }),
    );
    // oxlint-disable-next-line no-await-in-loop
    await store.storeReceipts(rows);
  }
  const left = async (tenant: string) =>
    (await store.of(tenant).listReceipts({ limit: 9, order: 'asc' }, AbortSignal.timeout(30_000)))
      .length;
  const parts = { store, clock, randomBytes };
  await dropExpired(parts);
  // A plan without the limit keeps everything.
  expect([await left('acme'), await left('default')]).toEqual([2, 4]);
  clock.goOn(1.5 * DAY);
  await dropExpired(parts);
  expect([await left('acme'), await left('default')]).toEqual([1, 4]);
  const usage = { from: '2000-01-01', to: '2999-12-31', groups: ['key'], limit: 9 } as const;
  expect(await store.of('acme').listUsage(usage)).toMatchObject([{ requests: 4 }]);
});

test('days that no tenant keeps are let go of whole, and events when the service says so', async () => {
  const { ask, clock, service } = await openConsole();
  const asked: object[] = [];
  const store = {
    ...service.store,
    keepDays: async (kept: object) => void asked.push(kept),
  };
  const parts = { store, clock, randomBytes, auditDays: 400 };
  await dropExpired(parts);
  await ask('POST plans', { name: 'short', limits: { retention_days: 2 } });
  await ask('POST plans', { name: 'long', limits: { retention_days: 90 } });
  await ask('POST tenants', { tenant_id: 'acme', plan: 'short' });
  await ask('PATCH tenants/default', { plan: 'long' });
  await dropExpired(parts);
  const now = clock.now();
  const auditFrom = now - 400 * DAY;
  // The first plan of a service keeps receipts for ever.
  expect(asked).toEqual([
    { now, auditFrom },
    { now, auditFrom, receiptsFrom: now - 90 * DAY },
  ]);
});

test('nothing expires by a clock that has just started or jumped, until it was steady for an hour', async () => {
  const { ask, clock, service } = await openConsole();
  const { store } = service;
  await ask('POST plans', { name: 'short', limits: { retention_days: 2 } });
  await ask('PATCH tenants/default', { plan: 'short' });
  const receipts = [0, 1].map((seq) =>
    rowOfReceipt({ tenant: 'default', seq: seq + 1, at: clock.now() }),
  );
  await store.storeReceipts(receipts);
  const left = async () =>
    (
      await store
        .of('default')
        .listReceipts({ limit: 9, order: 'asc' }, AbortSignal.timeout(30_000))
    ).length;
  let lead = 400 * DAY;
  const wrong = { now: () => clock.now() + lead, monotonic: () => clock.monotonic() };
  const run = expiry({ store, clock: wrong, randomBytes, auditDays: 2 });
  await run();
  clock.goOn(DAY / 48);
  lead = 0;
  await run();
  lead = 800 * DAY;
  clock.goOn(DAY / 24);
  await run();
  expect(await left()).toBe(2);
  lead = 0;
  clock.goOn(3 * DAY);
  await run();
  clock.goOn(DAY / 24);
  expect(await left()).toBe(2);
  await run();
  expect(await left()).toBe(0);
});
