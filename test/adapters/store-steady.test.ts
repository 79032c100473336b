import { existsSync, readdirSync, readlinkSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { blockEntry, foundBlock, foundBlocks } from '../support/ledger-entries.ts';
import { outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const OUTPUT = outputRecordOf('what the build said');
const FACT = recordOf('The code word is marmalade.');
const ENTRY = blockEntry('first');

/** A folder whose store holds an output, a fact and an entry, opened anew: nothing is in a cache. */
async function openFilled(folder = tempFolder(), lines: string[] = []): Promise<EmbeddedStore> {
  const first = openEmbeddedStore({ folder, report: () => undefined });
  await first.memory.capture([OUTPUT], patience());
  await first.memory.capture([FACT], patience());
  await first.ledger.record([ENTRY]);
  await first.close();
  const store = openEmbeddedStore({ folder, report: (line) => lines.push(line) });
  onTestFinished(() => store.close());
  await store.health();
  return store;
}

/** Asks for all that a request waits for. */
async function askAll({ memory, ledger, requestLog }: EmbeddedStore, other: string) {
  const question = { space: OUTPUT.space, digests: [OUTPUT.digest], nonce: randomBytes(32) };
  const [holdings, recalled, blocks] = await Promise.all([
    memory.hold(question, patience()),
    memory.recall(questionOf('What is the code word?'), patience()),
    foundBlocks(ledger, ['first', other]),
    requestLog.conversation({ conversation: 'c', limit: 10 }),
  ]);
  return [holdings.length, recalled.passages[0]?.text, blocks[0]];
}

const ALL = [1, FACT.text, ENTRY.block];

/** Another process writes, until it is released. */
async function holdWrites(folder: string): Promise<{ release(): void }> {
  const connection = loadDriver().open(join(folder, 'memory.db'));
  connection.exec('BEGIN IMMEDIATE');
  let isHeld = true;
  const release = (): void => {
    if (isHeld) connection.exec('ROLLBACK');
    if (isHeld) connection.close();
    isHeld = false;
  };
  onTestFinished(release);
  return { release };
}

test('blocks, proofs, recalls and rows are read while a write waits for another process', async () => {
  const folder = tempFolder();
  const store = await openFilled(folder);
  const other = await holdWrites(folder);
  let isCaptured = false;
  const capture = store.memory
    .capture([recordOf('The kiosk is in hall B.')], patience())
    .finally(() => (isCaptured = true));
  expect(await askAll(store, 'other:1')).toEqual(ALL);
  expect(await askAll(store, 'other:2')).toEqual(ALL);
  expect(isCaptured).toBe(false);
  other.release();
  expect(await capture).toEqual(['stored']);
  expect(await askAll(store, 'other:3')).toEqual(ALL);
});

test('a capture that meets a lock is stored once the lock is free, before the captures behind it', async () => {
  const folder = tempFolder();
  const store = await openFilled(folder);
  const other = await holdWrites(folder);
  const captured: string[] = [];
  const capture = async (text: string): Promise<void> => {
    captured.push(...(await store.memory.capture([recordOf(text)], patience())), text);
  };
  const both = [capture('The kiosk is in hall B.'), capture('It sells maps.')];
  // Longer than one attempt takes.
  await sleep(500);
  expect(captured).toEqual([]);
  other.release();
  await Promise.all(both);
  expect(captured).toEqual(['stored', 'The kiosk is in hall B.', 'stored', 'It sells maps.']);
});

test('R34: a database that is locked for longer than any wait loses nothing that was kept meanwhile', async () => {
  const folder = tempFolder();
  const lines: string[] = [];
  const store = await openFilled(folder, lines);
  const other = await holdWrites(folder);
  const said = recordOf('The kiosk is in hall B.');
  expect(store.outbox.keep([said])).toBe(true);
  await store.ledger.record([blockEntry('second')]);
  const refused = store.memory.capture([outputRecordOf('a later log')], patience());
  await expect(refused).rejects.toMatchObject({ reason: 'unavailable' });
  expect(await askAll(store, 'other:1')).toEqual(ALL);
  other.release();
  await store.outbox.flush(30_000);
  expect(store.outbox.waiting).toBe(0);
  expect(await store.memory.capture([outputRecordOf('a later log')], patience())).toEqual([
    'stored',
  ]);
  const beside = openEmbeddedStore({ folder, report: () => undefined });
  onTestFinished(() => beside.close());
  await expect.poll(() => foundBlock(beside.ledger, 'second')).toBe('block of second');
  expect((await beside.memory.list({ limit: 9, words: 'kiosk' }, patience())).length).toBe(1);
  expect(lines).toEqual([]);
}, 90_000);

function shell(line: string): boolean {
  return spawnSync('/bin/sh', ['-c', line]).status === 0;
}

const canMount = shell('unshare --mount true');

test('R34: on a full disk blocks and proofs go on, and what is kept later is kept', async (context) => {
  if (!canMount) context.skip('this user may not mount a small disk');
  const small = tempFolder();
  const isMounted = shell(`mount -t tmpfs -o size=4m none "${small}"`);
  onTestFinished(() => void shell(`umount -l "${small}"`));
  expect(isMounted).toBe(true);
  const lines: string[] = [];
  const store = await openFilled(join(small, 'data'), lines);
  const ballast = join(small, 'ballast');
  const { bavail, bsize } = statfsSync(small);
  writeFileSync(ballast, Buffer.alloc(bavail * bsize));
  const long = recordOf(`The kiosk is in hall B. ${'It sells maps. '.repeat(900)}`);
  expect(store.outbox.keep([long])).toBe(false);
  expect(lines).toEqual([expect.stringContaining('disk is full')]);
  const refused = store.memory.capture([outputRecordOf('a log '.repeat(3000))], patience());
  await expect(refused).rejects.toMatchObject({ reason: 'unavailable' });
  expect(await askAll(store, 'other:1')).toEqual(ALL);
  writeFileSync(ballast, '');
  rmSync(ballast);
  expect(store.outbox.keep([long])).toBe(true);
  await store.outbox.flush(30_000);
  expect((await store.memory.list({ limit: 9, words: 'kiosk' }, patience())).length).toBe(1);
});

/** Opens the database in another process, reads, and closes it: the last one deletes the log. */
function openElsewhere(path: string): string {
  const code = `const { DatabaseSync } = require('@photostructure/sqlite');
    const database = new DatabaseSync(process.argv[1]);
    console.log(database.prepare('SELECT count(*) AS records FROM records').get().records);
    database.close();`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', code, path], { encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.trim();
}

test('a connection that ends leaves the other ones of its process their locks', async () => {
  const folder = tempFolder();
  const lines: string[] = [];
  const store = await openFilled(folder, lines);
  const second = openEmbeddedStore({ folder, report: (line) => lines.push(line) });
  await second.health();
  await second.close();
  expect(openElsewhere(join(folder, 'memory.db'))).toBe('1');
  // Without its locks the other process took itself for the last one.
  expect(existsSync(join(folder, 'memory.db-wal'))).toBe(true);
  expect(await askAll(store, 'other:1')).toEqual(ALL);
  expect(lines).toEqual([]);
});

/** The descriptors that this process has of files in a folder. */
function descriptorsIn(folder: string): readonly string[] {
  return readdirSync('/proc/self/fd').flatMap((name) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${name}`);
      return path.startsWith(`${folder}/`) ? [path] : [];
    } catch {
      // The one of the folder itself.
      return [];
    }
  });
}

test.runIf(process.platform === 'linux')(
  'connections that come and go share one descriptor of the database, and nothing stays open after the last one',
  async () => {
    const folder = tempFolder();
    const store = await openFilled(folder);
    const counts: number[] = [];
    for (let times = 0; times < 4; times += 1) {
      const next = openEmbeddedStore({ folder, report: () => undefined });
      // oxlint-disable-next-line no-await-in-loop -- One after the other.
      await next.health();
      // oxlint-disable-next-line no-await-in-loop
      await next.close();
      // On Node 20 a closed connection of this thread ends once its statements are collected.
      collectGarbage();
      // oxlint-disable-next-line no-await-in-loop
      await sleep(50);
      counts.push(descriptorsIn(folder).length);
    }
    // SQLite keeps one of its own in reserve from the first one that is closed on.
    expect(new Set(counts).size).toBe(1);
    await store.close();
    collectGarbage();
    await expect.poll(() => descriptorsIn(folder)).toEqual([]);
  },
);
