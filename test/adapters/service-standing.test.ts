import { copyFileSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { JournalLedger } from '../../src/adapters/journals/ledger.ts';
import { rowOf } from '../../src/adapters/journals/ledger-row.ts';
import { tenantLedgerStore } from '../../src/adapters/service-memory/tenant-ledger.ts';
import { openServiceStore } from '../../src/adapters/service-store/sqlite-service-store.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import type { PurgeScope, ServiceStore } from '../../src/ports/service-store.ts';
import { rowOfReceipt } from '../support/receipt-facts.ts';
import { blockAddress, blockEntry, foundEntries } from '../support/ledger-entries.ts';
import { newPurgeId, objectOf, questionTo, SPACE } from '../support/service-objects.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** What a service's store says without asking a thread: whether its proofs stand, which keys are absent. */

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const [ONE, OTHER] = [objectOf('the first log'), objectOf('the second log')];

function open(folder: string, serves = true): ServiceStore {
  const store = openServiceStore({ folder, serves, creates: true, report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

async function keep(store: ServiceStore, texts: readonly (typeof ONE)[], tenant = 'default') {
  const batch = { space: SPACE, ifGeneration: undefined, objects: texts, now: 1000 };
  await store.of(tenant).capture(batch, patience());
}

async function proven(store: ServiceStore): Promise<readonly string[]> {
  const candidates = [ONE.digest, OTHER.digest];
  const { coverage } = await store.of('default').recall(questionTo({ candidates }), patience());
  return coverage.map(({ state }) => state);
}

/** The version once it stands: files that were new a moment ago are looked at once more. */
async function settledVersion(store: ServiceStore): Promise<number> {
  let [version, same]: [number | undefined, number] = [undefined, 0];
  for (let tries = 0; tries < 600; tries += 1) {
    const now = store.holdVersion?.();
    same = now !== undefined && now === version ? same + 1 : 0;
    version = now;
    if (version !== undefined && same === 10) return version;
    // oxlint-disable-next-line no-await-in-loop
    await sleep(10);
    // Any call of the worker that writes tells how the files stand.
    // oxlint-disable-next-line no-await-in-loop
    if (same === 5 || tries % 20 === 19) await store.of('default').recordLedger([]);
  }
  throw new Error('The state stays unknown.');
}

async function openWithBoth() {
  const folder = tempFolder();
  const store = open(folder);
  await keep(store, [ONE, OTHER]);
  expect(await proven(store)).toEqual(['durable', 'durable']);
  return { folder, store, version: await settledVersion(store) };
}

test('what a service itself stores and is asked leaves the version as it is', async () => {
  const { store, version } = await openWithBoth();
  await keep(store, [objectOf('a third log')]);
  await keep(store, [ONE], 'acme');
  await store.storeReceipts([rowOfReceipt()]);
  await proven(store);
  expect(await settledVersion(store)).toBe(version);
});

const SCOPES: readonly PurgeScope[] = [{ digests: [ONE.digest] }, { all: true }];

test.each(SCOPES)(
  'law 2: a purge gives another version, from its beginning on: %j',
  async (scope) => {
    const { store, version } = await openWithBoth();
    const purgeId = newPurgeId();
    const order = { purgeId, space: SPACE, scope, isDryRun: false, requestedBy: 'k', now: 2000 };
    await store.of('default').beginPurge(order);
    const begun = await settledVersion(store);
    expect(begun).not.toBe(version);
    // oxlint-disable-next-line no-await-in-loop
    while (!(await store.of('default').continuePurge(purgeId, 2000)));
    expect(store.holdVersion?.()).not.toBe(begun);
    expect(await settledVersion(store)).not.toBe(begun);
  },
);

test('law 2: a commit of another process shows at once, without a word of the store', async () => {
  const { folder, store, version } = await openWithBoth();
  const other = loadDriver().open(join(folder, 'service.db'));
  onTestFinished(() => other.close());
  expect(store.holdVersion?.()).toBe(version);
  await nextTurn();
  other.exec(`DELETE FROM object_texts; DELETE FROM objects WHERE digest = '${ONE.digest}'`);
  expect(store.holdVersion?.()).toBe(undefined);
  expect(await proven(store)).toEqual(['unknown', 'durable']);
  expect(await settledVersion(store)).not.toBe(version);
});

const CHANGES: Readonly<Record<string, (file: string) => void>> = {
  'the database is deleted': (file) => rmSync(file),
  'another file is put in its place': (file) => {
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
  },
  'the write-ahead log is deleted': (file) => rmSync(`${file}-wal`),
  'the index of the log is replaced': (file) => {
    copyFileSync(`${file}-shm`, `${file}.copy`);
    renameSync(`${file}.copy`, `${file}-shm`);
  },
  'the file was written in this very moment': (file) => utimesSync(file, new Date(), new Date()),
};

test.each(Object.entries(CHANGES))('law 2: nothing is certain once %s', async (_, change) => {
  const { folder, store, version } = await openWithBoth();
  expect(store.holdVersion?.()).toBe(version);
  await nextTurn();
  change(join(folder, 'service.db'));
  expect(store.holdVersion?.()).toBe(undefined);
});

test('law 2: whatever a service and another program do in turn, with the same version every proof still holds', async () => {
  const objects = Array.from({ length: 4 }, (_, at) => objectOf(`log number ${at}`));
  const step = fc.record({
    does: fc.constantFrom('keep', 'purge', 'erase', 'delete', 'record', 'look'),
    which: fc.nat({ max: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 14 }), async (steps) => {
      const folder = mkdtempSync(join(tempFolder(), 'data-'));
      const store = open(folder);
      await keep(store, objects.slice(0, 2));
      const raw = loadDriver().open(join(folder, 'service.db'));
      const begun: string[] = [];
      const own = store.of('default');
      const held = new Map<string, number>();
      for (const { does, which } of steps) {
        const object = objects[which] ?? ONE;
        const { digest } = object;
        /* oxlint-disable no-await-in-loop -- One after the other is the point. */
        const before = store.holdVersion?.();
        const { coverage } = await own.recall(questionTo({ candidates: [digest] }), patience());
        if (coverage[0]?.state === 'durable' && before !== undefined) held.set(digest, before);
        if (does === 'keep') await keep(store, [object]);
        else if (does === 'record') await own.recordLedger([]);
        else if (does === 'delete') {
          raw.exec('DELETE FROM object_texts');
          raw.exec(`DELETE FROM objects WHERE digest = '${digest}'`);
        } else if (does === 'purge') {
          const purgeId = newPurgeId();
          const scope = { digests: [digest] };
          const order = { purgeId, space: SPACE, scope, isDryRun: false, requestedBy: 'k' };
          await own.beginPurge({ ...order, now: 2000 });
          begun.push(purgeId);
        } else if (does === 'erase') {
          const purgeId = begun.shift();
          if (purgeId !== undefined) await own.continuePurge(purgeId, 2000);
        }
        const version = store.holdVersion?.();
        const rows = JSON.stringify(raw.prepare('SELECT digest FROM objects').all());
        for (const [one, at] of held) if (at === version) expect(rows).toContain(one);
        /* oxlint-enable no-await-in-loop */
      }
      raw.close();
      await store.close();
    }),
    { numRuns: 10 },
  );
});

test('law 2: a service whose file was replaced never comes back to its version', async () => {
  const { folder, store } = await openWithBoth();
  rmSync(join(folder, 'service.db'));
  writeFileSync(join(folder, 'service.db'), '', { mode: 0o600 });
  await expect(keep(store, [ONE])).rejects.toThrow('deleted or replaced');
  await nextTurn();
  expect(store.holdVersion?.()).toBe(undefined);
});

test('law 2: a closed store is not certain of anything', async () => {
  const { store } = await openWithBoth();
  await store.close();
  expect(store.holdVersion?.()).toBe(undefined);
});

test('the command line, beside which a service may write, tells no version', () => {
  expect(open(tempFolder(), false)).not.toHaveProperty('holdVersion');
});

test('no thread is asked for a key of the ledger that is certainly absent, and for every other one', async () => {
  const folder = tempFolder();
  const first = open(folder);
  const address = (name: string) => ({ ...blockAddress(name), tenant: 'acme' });
  const rowsOf = (names: readonly string[]) =>
    names.map((name) => ({ ...blockEntry(name), ...address(name) }));
  const journal = new JournalLedger({
    folder,
    store: tenantLedgerStore(first),
    report: () => undefined,
  });
  await journal.record(rowsOf(['a', 'b']));
  await journal.close();
  await first.close();

  const store = open(folder);
  let questions = 0;
  const of: ServiceStore['of'] = (tenant) => ({
    ...store.of(tenant),
    findLedger: (keys) => {
      questions += 1;
      return store.of(tenant).findLedger(keys);
    },
  });
  const ledger = new JournalLedger({
    folder,
    store: tenantLedgerStore({ ...store, of }),
    report: () => undefined,
  });
  onTestFinished(() => ledger.close());
  const find = async (...names: readonly string[]) => {
    const found = await foundEntries(ledger, names.map(address));
    return names.map((name) => found.get(address(name))?.block);
  };
  // The first question has the filter filled.
  expect(await find('none')).toEqual([undefined]);
  await settledVersion(store);
  await sleep(200);
  const before = questions;
  expect(await find('c', 'd')).toEqual([undefined, undefined]);
  expect(questions).toBe(before);
  expect(await find('a', 'e', 'b')).toEqual(['block of a', undefined, 'block of b']);
  expect(questions).toBe(before + 1);
  // The filter gets what is written later, before it is in the table.
  await store.of('acme').recordLedger([rowOf({ ...blockEntry('later'), ...address('later') })]);
  expect(await find('later')).toEqual(['block of later']);
});
