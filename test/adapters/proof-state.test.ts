import { randomBytes } from 'node:crypto';
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { type Connection, loadDriver } from '../../src/adapters/store/driver.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { blockEntry } from '../support/ledger-entries.ts';
import { outputRecordOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** As in proof-state.ts: a file system notes times in steps. */
const TIME_STEP_MS = 50;

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const [ONE, OTHER] = [outputRecordOf('the first log'), outputRecordOf('the second log')];

function open(folder: string): EmbeddedStore {
  const store = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => store.close());
  return store;
}

/** Another program with a connection of its own. */
async function connect(folder: string): Promise<Connection> {
  const connection = loadDriver().open(join(folder, 'memory.db'));
  connection.exec('PRAGMA busy_timeout = 10000');
  onTestFinished(() => connection.close());
  return connection;
}

async function held({ memory }: EmbeddedStore, digests: readonly string[]): Promise<string[]> {
  const question = { space: ONE.space, digests, nonce: randomBytes(32) };
  return (await memory.hold(question, patience())).map(({ digest }) => digest).toSorted();
}

/** The version once it stands: files that were new a moment ago are looked at once more. */
async function settledVersion(store: EmbeddedStore): Promise<number> {
  let [version, same]: [number | undefined, number] = [undefined, 0];
  for (let tries = 0; tries < 600; tries += 1) {
    const now = store.memory.holdVersion();
    same = now !== undefined && now === version ? same + 1 : 0;
    version = now;
    if (version !== undefined && same === STEADY_LOOKS) return version;
    // oxlint-disable-next-line no-await-in-loop
    await sleep(10);
    // oxlint-disable-next-line no-await-in-loop
    if (same === STEADY_LOOKS / 2 || tries % 20 === 19) await held(store, []);
  }
  throw new Error('The state stays unknown.');
}

const STEADY_LOOKS = 10;

async function openWithBoth() {
  const folder = join(tempFolder(), 'data');
  const store = open(folder);
  await store.memory.capture([ONE, OTHER], patience());
  expect(await held(store, [ONE.digest, OTHER.digest])).toHaveLength(2);
  return { folder, store, version: await settledVersion(store) };
}

test('what this process itself stores leaves the version as it is', async () => {
  const { store, version } = await openWithBoth();
  await store.memory.capture([outputRecordOf('a third log'), recordOf('A fact.')], patience());
  await store.ledger.record([blockEntry('a')]);
  await store.memory.list({ limit: 1 }, patience());
  expect(await settledVersion(store)).toBe(version);
});

test('law 2: after a deletion of its own the version is another one', async () => {
  const { store, version } = await openWithBoth();
  await store.memory.forget({ refs: [referenceOf(ONE.digest)] }, patience());
  expect(store.memory.holdVersion()).not.toBe(version);
  await held(store, [ONE.digest]);
  expect(await settledVersion(store)).not.toBe(version);
});

test('law 2: a deletion by another program shows at once, without a word of the store', async () => {
  const { folder, store, version } = await openWithBoth();
  const other = await connect(folder);
  expect(store.memory.holdVersion()).toBe(version);
  other.exec('INSERT INTO signals (space, number, signal) VALUES (1, 1, 0.5)');
  expect(store.memory.holdVersion()).toBe(version);
  other.exec("DELETE FROM outputs WHERE digest = '" + ONE.digest + "'");
  expect(store.memory.holdVersion()).not.toBe(version);
  // After the store has looked, too: its earlier proofs do not come back.
  expect(await held(store, [ONE.digest, OTHER.digest])).toEqual([OTHER.digest]);
  expect(await settledVersion(store)).not.toBe(version);
});

const CHANGES: Readonly<Record<string, (file: string) => void>> = {
  'the database is deleted': (file) => rmSync(file),
  'the database is moved away': (file) => renameSync(file, `${file}.old`),
  'another file is put in its place': (file) => {
    copyFileSync(file, `${file}.copy`);
    renameSync(`${file}.copy`, file);
  },
  'the file is overwritten in place': (file) => writeFileSync(file, readFileSync(file)),
  'the write-ahead log is deleted': (file) => rmSync(`${file}-wal`),
  'the write-ahead log is replaced': (file) => {
    copyFileSync(`${file}-wal`, `${file}.copy`);
    renameSync(`${file}.copy`, `${file}-wal`);
  },
  'the file was written in this very moment': (file) => utimesSync(file, new Date(), new Date()),
};

test.each(Object.entries(CHANGES))('law 2: no earlier proof counts once %s', async (_, change) => {
  const { folder, store, version } = await openWithBoth();
  expect(store.memory.holdVersion()).toBe(version);
  change(join(folder, 'memory.db'));
  expect(store.memory.holdVersion()).not.toBe(version);
});

test('law 2: a store that goes on with another file never comes back to an earlier version', async () => {
  const { folder, store, version } = await openWithBoth();
  const versions = [version];
  for (let round = 0; round < 3; round += 1) {
    /* oxlint-disable no-await-in-loop -- One after the other is the point. */
    rmSync(join(folder, 'memory.db'));
    expect(await held(store, [ONE.digest])).toEqual([]);
    await store.memory.capture([ONE], patience());
    versions.push(await settledVersion(store));
    /* oxlint-enable no-await-in-loop */
  }
  expect(new Set(versions).size).toBe(versions.length);
});

test('law 2: a closed store is not certain of anything', async () => {
  const { store } = await openWithBoth();
  await store.close();
  expect(store.memory.holdVersion()).toBe(undefined);
});

test('law 2: whatever two processes do in turn, with the same version every proof still holds', async () => {
  const step = fc.record({
    by: fc.constantFrom('own', 'other', 'raw'),
    does: fc.constantFrom('store', 'forget', 'record', 'look'),
    which: fc.nat({ max: 3 }),
  });
  const outputs = Array.from({ length: 4 }, (_, at) => outputRecordOf(`log number ${at}`));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 14 }), async (steps) => {
      const folder = mkdtempSync(join(tempFolder(), 'data-'));
      const [own, other] = [open(folder), open(folder)];
      await own.memory.capture(outputs.slice(0, 2), patience());
      const raw = await connect(folder);
      const proven = new Map<string, number>();
      for (const { by, does, which } of steps) {
        const output = outputs[which] ?? ONE;
        /* oxlint-disable no-await-in-loop -- One after the other is the point. */
        const before = own.memory.holdVersion();
        for (const digest of await held(own, [output.digest])) {
          if (before !== undefined) proven.set(digest, before);
        }
        const store = by === 'own' ? own : other;
        if (by === 'raw' && does === 'forget') {
          raw.exec(`DELETE FROM outputs WHERE digest = '${output.digest}'`);
        } else if (does === 'store') await store.memory.capture([output], patience());
        else if (does === 'forget') {
          await store.memory.forget({ refs: [referenceOf(output.digest)] }, patience());
        } else if (does === 'record') await store.ledger.record([blockEntry(`e${which}`)]);
        const version = own.memory.holdVersion();
        const rows = raw.prepare('SELECT digest FROM outputs').all();
        for (const [digest, at] of proven) {
          if (at === version) expect(JSON.stringify(rows)).toContain(digest);
        }
        /* oxlint-enable no-await-in-loop */
      }
      await Promise.all([own.close(), other.close()]);
    }),
    { numRuns: 8 },
  );
});

test('law 2: a file that was written a moment ago tells nothing yet, also where its time is known', async () => {
  const folder = join(tempFolder(), 'data');
  const store = open(folder);
  await store.memory.capture([ONE], patience());
  await settledVersion(store);
  const path = join(folder, 'memory.db');
  let looks = 0;
  for (let tries = 0; tries < 200 && looks < 3; tries += 1) {
    const written = Date.now();
    utimesSync(path, new Date(), new Date());
    // The store's thread has seen this time. A second write in the same step would have it too.
    // oxlint-disable-next-line no-await-in-loop
    await held(store, []);
    const version = store.memory.holdVersion();
    // On a busy machine the question may have taken longer than a step.
    if (Date.now() - written >= TIME_STEP_MS) continue;
    expect(version).toBeUndefined();
    looks += 1;
  }
  expect(looks).toBe(3);
});
