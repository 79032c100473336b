import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { buildChild } from '../support/build-child.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

/** How a store ends: its files, and the process that holds it. */

let child: string;

beforeAll(async () => {
  child = await buildChild('busy-exit-child');
}, 60_000);

afterAll(() => rmSync(dirname(child), { recursive: true, force: true }));

test('a closed store leaves its two files: the write-ahead logs, which hold every word, go with it', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  store.outbox.keep([recordOf('The passphrase is zebrafishlantern.')]);
  await store.outbox.flush(30_000);
  await store.memory.list({ limit: 10, words: 'passphrase' }, AbortSignal.timeout(30_000));
  expect(readdirSync(folder)).toContain('memory.db-wal');
  await store.close();
  const holders = readdirSync(folder).filter((name) => statSync(join(folder, name)).size > 0);
  // On Node 20 the state's connection ends later, and leaves an empty log and an index without a text.
  expect(holders.filter((name) => !name.endsWith('-shm'))).toEqual(['memory.db', 'state.db']);
});

test('a process that ends while its store is at work for seconds ends with its own exit code', () => {
  const { status, signal, stderr } = spawnSync(process.execPath, [child, tempFolder()], {
    encoding: 'utf8',
  });
  expect([status, signal, stderr]).toEqual([3, null, '']);
}, 60_000);
