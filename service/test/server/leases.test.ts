import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { answeredOnce } from '../../src/server/operations/capture.ts';
import { LEASE_MS } from '../../src/core/limits.ts';
import { underLease } from '../../src/server/leases.ts';
import { dropExpired, finishPurges, RECEIPTS_LEASE } from '../../src/server/jobs.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import { newPurgeId, objectOf, SPACE } from '../support/service-objects.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function openStore(folder = tempFolder()) {
  const store = openServiceStore({ folder, serves: true, creates: true, report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

test('work under a lease is done by one, and its lease is given back also when it fails', async () => {
  const store = openStore().of('default');
  const needs = { store, randomBytes };
  const first = underLease(needs, 'job', async () => {
    const second = await underLease(needs, 'job', async () => 'twice');
    return second === undefined ? 'once' : 'twice';
  });
  expect(await first).toEqual({ result: 'once' });
  const failing = underLease(needs, 'job', () => Promise.reject(new Error('broken')));
  await expect(failing).rejects.toThrow('broken');
  expect(await underLease(needs, 'job', async () => 1)).toEqual({ result: 1 });
});

test('a lease stands as long as its work takes, and no longer', async () => {
  const store = openStore().of('default');
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const renewed: boolean[] = [];
  const watched = {
    ...store,
    renewLease: async (lease: Parameters<typeof store.renewLease>[0]) => {
      const stands = await store.renewLease(lease);
      renewed.push(stands);
      return stands;
    },
  };
  await underLease({ store: watched, randomBytes }, 'job', async () => {
    vi.advanceTimersByTime(LEASE_MS / 3 + 1);
    await expect.poll(() => renewed).toEqual([true]);
  });
  vi.advanceTimersByTime(LEASE_MS * 2);
  await sleep(20);
  expect(renewed).toEqual([true]);
  expect(await store.listLeases('')).toEqual([]);
});

test('a purge that a dead process left is finished, and one that another holds is left to it', async () => {
  const store = openStore();
  const own = store.of('default');
  const object = objectOf('It goes.');
  const batch = { space: SPACE, ifGeneration: undefined, objects: [object], now: 5 };
  await own.capture(batch, patience());
  const purgeId = newPurgeId();
  const scope = { digests: [object.digest] };
  await own.beginPurge({ purgeId, space: SPACE, scope, isDryRun: false, requestedBy: 'k', now: 6 });
  const held = { name: `purge:${purgeId}`, holder: 'other', note: '', ms: 60_000 };
  await own.takeLease(held);
  const parts = { store, clock: manualClock(), randomBytes };
  await finishPurges(parts);
  expect(await own.findPurge(purgeId, patience())).toMatchObject({ state: 'tombstoned' });
  await own.endLease(held);
  await finishPurges(parts);
  expect(await own.findPurge(purgeId, patience())).toMatchObject({ state: 'erased' });
});

test('receipts leave the database at the hands of one process at a time', async () => {
  const store = openStore();
  const lease = { name: RECEIPTS_LEASE, holder: 'archive', note: '', ms: 60_000 };
  await store.of('service').takeLease(lease);
  let asked = 0;
  const watched = {
    ...store,
    listTenants: async (page: Parameters<typeof store.listTenants>[0]) => {
      asked += 1;
      return store.listTenants(page);
    },
  };
  const parts = { store: watched, clock: manualClock(), randomBytes };
  await dropExpired(parts);
  expect(asked).toBe(0);
  await store.of('service').endLease(lease);
  await dropExpired(parts);
  expect(asked).toBe(1);
});

test('the process that gets the file to itself owes nothing to the holders before it', async () => {
  const folder = tempFolder();
  const before = openStore(folder);
  const lease = { name: 'job', holder: 'dead', note: 'n', ms: 3_600_000 };
  await before.of('default').takeLease(lease);
  await before.close();
  const after = openStore(folder).of('default');
  expect(await after.takeLease({ ...lease, holder: 'new' })).toBe(undefined);
});

test('a call whose caller went leaves nothing begun', async () => {
  const store = openStore().of('default');
  const key = { keyId: 'k', idempotencyKey: 'batch-0001' };
  const asked = { store, key, requestHash: 'h', holder: 'a', signal: AbortSignal.abort() };
  const work = async () => ({ result: 1, kept: undefined });
  await expect(answeredOnce(asked, work)).rejects.toThrow('in time');
  await expect.poll(() => store.listLeases('')).toEqual([]);
  const again = { ...asked, holder: 'b', signal: patience() };
  expect(await answeredOnce(again, work)).toEqual({ result: 1 });
});
