import { randomBytes } from 'node:crypto';
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { replacedAt } from '../../src/adapters/files/marks.ts';
import { findWaiting } from '../../src/adapters/state/waiting-captures.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { textProof } from '../../src/core/memory-api/canonical.ts';
import type { Holding } from '../../src/ports/memory.ts';
import { blockEntry, foundBlock } from '../support/ledger-entries.ts';
import { outputRecordOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

const patience = (): AbortSignal => AbortSignal.timeout(30_000);
const [EARLIER, LATER] = [outputRecordOf('the first log'), outputRecordOf('the second log')];

const NONCE = new Uint8Array(32);

interface Opened extends EmbeddedStore {
  readonly lines: readonly string[];
  /** Those of the two outputs that it proves now. */
  held(): Promise<readonly string[]>;
  /** What it says of the later one. */
  hold(): Promise<readonly Holding[]>;
}

function open(folder: string): Opened {
  const lines: string[] = [];
  const store = openEmbeddedStore({ folder, report: (line) => lines.push(line) });
  onTestFinished(() => store.close());
  const held = async (): Promise<readonly string[]> => {
    const digests = [EARLIER.digest, LATER.digest];
    const question = { space: EARLIER.space, digests, nonce: randomBytes(32) };
    const holdings = await store.memory.hold(question, patience());
    return holdings.map(({ digest }) => digest).toSorted();
  };
  const hold = (): Promise<readonly Holding[]> =>
    store.memory.hold({ space: LATER.space, digests: [LATER.digest], nonce: NONCE }, patience());
  return { ...store, lines, held, hold };
}

const BOTH = [EARLIER.digest, LATER.digest].toSorted();

/** A folder whose store holds both outputs and has proven them; `backup` has the earlier one alone. */
async function heldBoth(): Promise<{ folder: string; store: Opened; backup: string }> {
  const folder = join(tempFolder(), 'data');
  const first = openEmbeddedStore({ folder, report: () => undefined });
  await first.memory.capture([EARLIER], patience());
  await first.close();
  const backup = join(tempFolder(), 'backup.db');
  copyFileSync(join(folder, 'memory.db'), backup);
  const store = open(folder);
  await store.memory.capture([LATER], patience());
  expect(await store.held()).toEqual(BOTH);
  return { folder, store, backup };
}

/** Makes the file larger, and moves all that the log holds into it. */
async function grow({ memory }: Opened, folder: string, how = 'once'): Promise<void> {
  const bulk = Array.from({ length: 64 }, (_, at) =>
    outputRecordOf(`Output ${at} ${how}. ${'It grows. '.repeat(800)}`),
  );
  await memory.capture(bulk, patience());
  const connection = loadDriver().open(join(folder, 'memory.db'));
  connection.exec('PRAGMA busy_timeout = 10000');
  const done = connection.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  expect(done).toMatchObject({ busy: 0 });
  connection.close();
}

async function expectToldOnce(store: Opened, folder: string): Promise<void> {
  const { lines } = store;
  await expect
    .poll(() => store.held().then(() => lines.join()))
    .toContain('replaced while svc ran');
  const told = lines.filter((line) => line.includes('replaced while svc ran'));
  expect(told).toHaveLength(1);
  expect(lines.join()).toContain(join(folder, 'memory.db'));
  expect(replacedAt(folder)).toBeGreaterThan(0);
}

async function expectNotProven(store: Opened): Promise<void> {
  expect(await store.held().catch(() => [])).not.toContain(LATER.digest);
}

const REMOVALS: Readonly<Record<string, (folder: string) => void>> = {
  'the file is deleted': (folder) => rmSync(join(folder, 'memory.db')),
  'the file is moved away': (folder) =>
    renameSync(join(folder, 'memory.db'), join(folder, 'elsewhere.db')),
  'the file and its logs are deleted': (folder) => {
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(folder, `memory.db${suffix}`));
  },
  'an empty file is put in its place': (folder) => {
    const other = join(folder, 'other');
    writeFileSync(other, '', { mode: 0o600 });
    renameSync(other, join(folder, 'memory.db'));
  },
  'the folder is deleted': (folder) => rmSync(folder, { recursive: true }),
  'the folder is replaced': (folder) => {
    renameSync(folder, `${folder}-old`);
    mkdirSync(folder, { mode: 0o700 });
  },
};

test.each(Object.entries(REMOVALS))(
  'law 2: nothing is proven any more once %s, and it is said once',
  async (_, remove) => {
    const { folder, store } = await heldBoth();
    remove(folder);
    expect(await store.held()).toEqual([]);
    expect(await store.held()).toEqual([]);
    await expectToldOnce(store, folder);
    expect(
      await store.memory.retrieve({ space: LATER.space, digest: LATER.digest }, patience()),
    ).toBe(undefined);
    // The new file is a store like any other.
    expect(await store.memory.capture([LATER], patience())).toEqual(['stored']);
    expect(await store.held()).toEqual([LATER.digest]);
    expect(await open(folder).held()).toEqual([LATER.digest]);
    expect(store.lines).toHaveLength(1);
  },
);

test('a database that is moved away takes along what was only in its log', async () => {
  const { folder, store } = await heldBoth();
  const elsewhere = join(tempFolder(), 'memory.db');
  renameSync(join(folder, 'memory.db'), elsewhere);
  expect(await store.held()).toEqual([]);
  expect(await open(dirname(elsewhere)).held()).toEqual(BOTH);
});

test('the log of a database that was deleted is not taken for that of a new one', async () => {
  const { folder, store } = await heldBoth();
  rmSync(join(folder, 'memory.db'));
  const beside = open(folder);
  expect(await beside.memory.capture([EARLIER], patience())).toEqual(['stored']);
  expect(beside.lines).toEqual([]);
  expect(await store.held()).toEqual([EARLIER.digest]);
});

test('law 2: a database put in the place of another is what proofs are made from', async () => {
  const { folder, store, backup } = await heldBoth();
  renameSync(backup, join(folder, 'memory.db'));
  for (const suffix of ['-wal', '-shm']) rmSync(join(folder, `memory.db${suffix}`));
  expect(await store.held()).toEqual([EARLIER.digest]);
  await expectToldOnce(store, folder);
});

test('law 2: a backup copied over the open file is what proofs are made from', async () => {
  const { folder, store, backup } = await heldBoth();
  await grow(store, folder);
  expect(await store.held()).toEqual(BOTH);
  // Half of it, and a moment later all: a large file takes a while.
  const path = join(folder, 'memory.db');
  const bytes = readFileSync(backup);
  writeFileSync(path, bytes.subarray(0, bytes.length / 2));
  await expectNotProven(store);
  writeFileSync(path, bytes);
  await expectNotProven(store);
  await expect.poll(() => store.held().catch(() => undefined)).toEqual([EARLIER.digest]);
  await expectToldOnce(store, folder);
  // What was in the log of the earlier file is in no file that is used.
  expect(await store.memory.capture([LATER], patience())).toEqual(['stored']);
  expect(await open(folder).held()).toEqual(BOTH);
});

test('law 2: of several connections one gives a restored backup its own file, and none harms it', async () => {
  const { folder, store, backup } = await heldBoth();
  await grow(store, folder);
  const others = Array.from({ length: 3 }, () => open(folder));
  const all = [store, ...others];
  expect(await Promise.all(all.map((one) => one.held()))).toEqual(all.map(() => BOTH));
  writeFileSync(join(folder, 'memory.db'), readFileSync(backup));
  for (const one of all) {
    // oxlint-disable-next-line no-await-in-loop -- Each asks all the time, beside the others.
    await expect
      .poll(() => Promise.all(all.map((it) => it.held().catch(() => undefined))))
      .toEqual(all.map(() => [EARLIER.digest]));
    expect(one.lines.join()).not.toContain('damaged');
  }
  expect(existsSync(join(folder, 'memory.db.restoring'))).toBe(false);
  expect(await store.memory.capture([LATER], patience())).toEqual(['stored']);
  expect(await Promise.all(all.map((one) => one.held()))).toEqual(all.map(() => BOTH));
});

test.each([
  ['half of it', 2],
  ['nothing', Infinity],
])(
  'a backup of which %s is copied over the file is taken neither for a damaged one nor for a new one',
  async (_, part) => {
    const { folder, store, backup } = await heldBoth();
    await store.close();
    const path = join(folder, 'memory.db');
    const bytes = readFileSync(backup);
    const started = bytes.subarray(0, bytes.length / part);
    writeFileSync(path, started);
    const opened = open(folder);
    const held = opened.held();
    // A program that copies never pauses for long. Each write restarts the second in which svc waits.
    for (let writes = 0; writes < 10; writes += 1) {
      // oxlint-disable-next-line no-await-in-loop
      await sleep(50);
      utimesSync(path, new Date(), new Date());
    }
    const file = openSync(path, 'r+');
    writeSync(file, bytes.subarray(started.length), 0, undefined, started.length);
    closeSync(file);
    expect(await held).toEqual([EARLIER.digest]);
    expect(opened.lines).toEqual([]);
  },
);

test('two stores that open the same new folder together both work', async () => {
  const folder = join(tempFolder(), 'data');
  const stores = [open(folder), open(folder)];
  await Promise.all(stores.map((store) => store.memory.capture([EARLIER], patience())));
  expect(await Promise.all(stores.map((store) => store.held()))).toEqual([
    [EARLIER.digest],
    [EARLIER.digest],
  ]);
  expect(stores.flatMap(({ lines }) => lines)).toEqual([]);
});

test('law 2: a database that a forget made smaller is the same one', async () => {
  const { folder, store } = await heldBoth();
  await grow(store, folder);
  const pages = headerOf(folder, 'pages');
  const commandLine = open(folder);
  await commandLine.memory.forget({ words: 'grows' }, patience());
  expect(headerOf(folder, 'pages')).toBeLessThan(pages / 2);
  expect([await store.held(), await commandLine.held()]).toEqual([BOTH, BOTH]);
  expect([...store.lines, ...commandLine.lines]).toEqual([]);
});

test('law 2: a backup from before a forget is what proofs are made from', async () => {
  const { folder, store } = await heldBoth();
  await grow(store, folder);
  const path = join(folder, 'memory.db');
  const backup = readFileSync(path);
  await store.memory.forget({ words: 'second' }, patience());
  await grow(store, folder, 'again');
  expect(await store.held()).toEqual([EARLIER.digest]);
  writeFileSync(path, backup);
  await expect.poll(() => store.held().catch(() => undefined)).toEqual(BOTH);
  await expectToldOnce(store, folder);
});

let otherMachine: Promise<Buffer> | undefined;

/** SQLite counts a change when a database is opened and written, so a small one is opened often. */
async function makeOther(): Promise<Buffer> {
  const folder = join(tempFolder(), 'other');
  for (let write = 0; write < 20; write += 1) {
    const writer = open(folder);
    // oxlint-disable-next-line no-await-in-loop
    await writer.memory.capture(
      [EARLIER, outputRecordOf(`${write}${'.'.repeat(5000)}`)],
      patience(),
    );
    // oxlint-disable-next-line no-await-in-loop
    await writer.close();
  }
  return readFileSync(join(folder, 'memory.db'));
}

test.each(['before', 'after'])(
  'law 2: a smaller database of another machine, copied over the file %s a forget, is what proofs are made from',
  async (when) => {
    const other = await (otherMachine ??= makeOther());
    const { folder, store } = await heldBoth();
    await grow(store, folder);
    if (when === 'after') await store.memory.forget({ words: 'output 1' }, patience());
    expect(await store.held()).toEqual(BOTH);
    expect(fieldOf(other, 'changes')).toBeGreaterThanOrEqual(headerOf(folder, 'changes'));
    expect(fieldOf(other, 'pages')).toBeLessThan(headerOf(folder, 'pages'));
    writeFileSync(join(folder, 'memory.db'), other);
    await expect.poll(() => store.held().catch(() => undefined)).toEqual([EARLIER.digest]);
    await expectToldOnce(store, folder);
  },
);

test('law 2: nothing is proven from a file that another program has cut off', async () => {
  const { folder, store } = await heldBoth();
  await grow(store, folder);
  truncateSync(join(folder, 'memory.db'), 8192);
  await expectNotProven(store);
  await expect.poll(() => store.held().catch(() => undefined)).toEqual([]);
  expect(store.lines.join()).toContain('damaged');
});

function headerOf(folder: string, name: 'changes' | 'pages'): number {
  return fieldOf(readFileSync(join(folder, 'memory.db')), name);
}

function fieldOf(database: Buffer, name: 'changes' | 'pages'): number {
  return database.readUInt32BE(name === 'changes' ? 24 : 28);
}

test('law 2: a byte of the file that another program changed is in the proof', async () => {
  const { folder, store } = await heldBoth();
  await grow(store, folder);
  const [whole] = await store.hold();
  const path = join(folder, 'memory.db');
  const bytes = readFileSync(path);
  bytes.write('THE', bytes.indexOf('the second log'));
  writeFileSync(path, bytes);
  const [changed] = await store.hold();
  expect([changed?.digest, whole?.digest]).toEqual([LATER.digest, LATER.digest]);
  expect(whole?.proof).toBe(textProof(NONCE, 'tool', LATER.text));
  expect(changed?.proof).toBe(textProof(NONCE, 'tool', 'THE second log'));
  expect(store.lines).toEqual([]);
});

test('law 2: the same bytes copied over the file change nothing', async () => {
  const { folder, store } = await heldBoth();
  const path = join(folder, 'memory.db');
  writeFileSync(path, readFileSync(path));
  expect(await store.held()).toEqual(BOTH);
  expect(store.lines).toEqual([]);
});

test('law 2: a backup restored through SQLite is what proofs are made from', async () => {
  const { folder, store, backup } = await heldBoth();
  const saved = loadDriver().open(backup);
  onTestFinished(() => saved.close());
  const restore: unknown = Reflect.get(saved, 'backup');
  if (typeof restore !== 'function') throw new TypeError('this SQLite copies no database');
  await Reflect.apply(restore, saved, [join(folder, 'memory.db')]);
  expect(await store.held()).toEqual([EARLIER.digest]);
});

test('law 2: a write-ahead log that is deleted takes nothing that was stored with it', async () => {
  const { folder, store } = await heldBoth();
  rmSync(join(folder, 'memory.db-wal'));
  expect(await store.held()).toEqual(BOTH);
  await expectToldOnce(store, folder);
  expect(await open(folder).held()).toEqual(BOTH);
});

test('law 2: of two processes each goes on with the new file, and neither hurts the other', async () => {
  const { folder, store } = await heldBoth();
  const beside = open(folder);
  expect(await beside.held()).toEqual(BOTH);
  rmSync(join(folder, 'memory.db'));
  expect(await beside.memory.capture([LATER], patience())).toEqual(['stored']);
  expect(await store.held()).toEqual([LATER.digest]);
  expect(await beside.held()).toEqual([LATER.digest]);
  expect(await store.memory.capture([EARLIER], patience())).toEqual(['stored']);
  expect(await beside.held()).toEqual(BOTH);
  await store.close();
  expect(await beside.held()).toEqual(BOTH);
  expect(await open(folder).held()).toEqual(BOTH);
});

test('what the removed file held is not taken as stored: the same words are stored again', async () => {
  const { folder, store } = await heldBoth();
  const said = recordOf('The kiosk is in hall B.');
  expect(store.outbox.keep([said])).toBe(true);
  await store.outbox.flush(30_000);
  const before = store.ledger.generation();
  rmSync(join(folder, 'memory.db'));
  await store.held();
  // Told by the worker; the main thread knows when it has the next answer.
  expect(store.ledger.generation()).not.toBe(before);
  expect(store.outbox.keep([said])).toBe(true);
  await store.outbox.flush(30_000);
  const listed = await store.memory.list({ limit: 10, words: 'kiosk' }, patience());
  expect(listed.map(({ text }) => text)).toEqual([said.text]);
});

test('R27: what waits in the outbox is on disk again after its folder was deleted', async () => {
  const folder = join(tempFolder(), 'data');
  const store = open(folder);
  await store.ledger.record([blockEntry('a')]);
  expect(store.outbox.keep([recordOf('first')])).toBe(true);
  rmSync(folder, { recursive: true });
  expect(store.outbox.keep([recordOf('second')])).toBe(true);
  expect(findWaiting(folder)).toMatchObject([{ target: 'store', records: 2 }]);
  expect(await foundBlock(store.ledger, 'a')).toBe('block of a');
  await store.outbox.flush(30_000);
  const listed = await store.memory.list({ limit: 10 }, patience());
  expect(listed.map(({ text }) => text).toSorted()).toEqual(['first', 'second']);
});
