import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { buildChild } from '../support/build-child.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** How a store ends: its files, and the process that holds it. */

let child: string;

beforeAll(async () => {
  child = await buildChild('busy-exit-child');
}, 60_000);

afterAll(() => rmSync(dirname(child), { recursive: true, force: true }));

test('a closed store leaves one file: the write-ahead log, which holds every word, goes with it', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  store.outbox.keep([recordOf('The passphrase is zebrafishlantern.')]);
  await store.outbox.flush(30_000);
  await store.memory.list({ limit: 10, words: 'passphrase' }, AbortSignal.timeout(30_000));
  expect(readdirSync(folder)).toContain('memory.db-wal');
  await store.close();
  expect(readdirSync(folder)).toEqual(['memory.db']);
});

test('a process that ends while its store is at work for seconds ends with its own exit code', () => {
  const { status, signal, stderr } = spawnSync(process.execPath, [child, tempFolder()], {
    encoding: 'utf8',
  });
  expect([status, signal, stderr]).toEqual([3, null, '']);
}, 60_000);
