import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { FACTS, outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(10_000);

function openStore(folder: string, lines: string[] = []): EmbeddedStore {
  const store = openEmbeddedStore({ folder, report: (line) => lines.push(line) });
  onTestFinished(() => store.close());
  return store;
}

function modeOf(path: string): number {
  return statSync(path).mode & 0o777;
}

test('R28: the folder is 0700 and every file in it 0600, whatever the umask', async () => {
  const umask = process.umask(0);
  onTestFinished(() => void process.umask(umask));
  const folder = join(tempFolder(), 'data', 'svc');
  const store = openStore(folder);
  await store.memory.capture([recordOf('one')], patience());
  store.outbox.keep([recordOf('two')]);
  store.ledger.record([{ key: 'k', block: '', form: 'text', dropsEarlier: false, at: 1 }]);
  expect(modeOf(folder)).toBe(0o700);
  const files = readdirSync(folder);
  expect(files.length).toBeGreaterThanOrEqual(5);
  expect(files.filter((file) => modeOf(join(folder, file)) !== 0o600)).toEqual([]);
});

test('R28: looser modes of an earlier file are tightened', async () => {
  const folder = tempFolder();
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'memory.db'), '', { mode: 0o644 });
  await openStore(folder).health();
  expect(modeOf(folder)).toBe(0o700);
  expect(modeOf(join(folder, 'memory.db'))).toBe(0o600);
});

test('R28: a database that is a symbolic link is refused and not written to', async () => {
  const folder = tempFolder();
  const target = join(tempFolder(), 'elsewhere');
  writeFileSync(target, '');
  symlinkSync(target, join(folder, 'memory.db'));
  await expect(openStore(folder).health()).rejects.toMatchObject({ reason: 'unavailable' });
  expect(statSync(target).size).toBe(0);
});

test('the SQLite in use is safe for several processes, and the log is a write-ahead log', async () => {
  const health = await openStore(tempFolder()).health();
  expect(health.sqliteVersion >= '3.51.3').toBe(true);
  expect(health.journalMode).toBe('wal');
});

test('a file that is no database is set aside with its log, and a new one begun', async () => {
  const folder = tempFolder();
  const lines: string[] = [];
  writeFileSync(join(folder, 'memory.db'), 'this is no database, but it is mine '.repeat(400));
  writeFileSync(join(folder, 'memory.db-wal'), 'nor is this a log');
  const store = openStore(folder, lines);
  expect(await store.memory.capture([recordOf('fresh')], patience())).toEqual(['stored']);
  const aside = readdirSync(folder).filter((file) => file.includes('corrupt'));
  const texts = aside.map((file) => readFileSync(join(folder, file), 'utf8'));
  expect(texts.some((text) => text.includes('but it is mine'))).toBe(true);
  expect(texts.some((text) => text.includes('nor is this a log'))).toBe(true);
  expect(lines).toEqual([expect.stringContaining('.corrupt-')]);
});

test('a database with a broken page is set aside when it is opened', async () => {
  const folder = tempFolder();
  const first = openEmbeddedStore({ folder, report: () => undefined });
  await first.memory.capture(
    FACTS.map((text) => recordOf(text)),
    patience(),
  );
  await first.close();
  const path = join(folder, 'memory.db');
  const bytes = readFileSync(path);
  bytes.fill(0xa5, 8192, bytes.length - 8192);
  writeFileSync(path, bytes);
  const lines: string[] = [];
  const store = openStore(folder, lines);
  expect(await store.memory.list({ limit: 10 }, patience())).toEqual([]);
  expect(lines).toHaveLength(1);
});

test('a database of a later svc is left as it is', async () => {
  const folder = tempFolder();
  const first = openEmbeddedStore({ folder, report: () => undefined });
  await first.health();
  await first.close();
  const path = join(folder, 'memory.db');
  const bytes = readFileSync(path);
  bytes.writeUInt32BE(99, 60); // user_version in SQLite's file header
  writeFileSync(path, bytes);
  await expect(openStore(folder).health()).rejects.toMatchObject({
    reason: 'unavailable',
    message: expect.stringContaining('later version'),
  });
  expect(readdirSync(folder).filter((file) => file.includes('corrupt'))).toEqual([]);
});

test('a folder that cannot be made makes the memory unavailable, and nothing else fails', async () => {
  const file = join(tempFolder(), 'file');
  writeFileSync(file, '');
  const lines: string[] = [];
  const store = openEmbeddedStore({
    folder: join(file, 'data'),
    report: (line) => lines.push(line),
  });
  const asked = store.memory.recall(questionOf('anything'), patience());
  await expect(asked).rejects.toMatchObject({ reason: 'unavailable' });
  expect(store.outbox.keep([recordOf('lost')])).toBe(false);
  store.ledger.record([{ key: 'k', block: 'b', form: 'text', dropsEarlier: false, at: 1 }]);
  expect((await store.ledger.find(['k'], 10_000))?.size).toBe(1);
  expect(await store.ledger.find(['k', 'other'], 10_000)).toBeUndefined();
  store.requestLog.add({ ...row, id: 'r' });
  await store.close();
  expect(lines.length).toBeGreaterThan(0);
});

test('two stores on one folder see what the other one stored', async () => {
  const folder = tempFolder();
  const [one, two] = [openStore(folder), openStore(folder)];
  const [first, second] = [recordOf('The kiosk is in hall B.'), recordOf('The kiosk sells maps.')];
  await Promise.all([
    one.memory.capture([first], patience()),
    two.memory.capture([second], patience()),
  ]);
  for (const store of [one, two]) {
    // oxlint-disable-next-line no-await-in-loop
    const { passages } = await store.memory.recall(questionOf('where is the kiosk'), patience());
    expect(passages).toHaveLength(2);
  }
});

test('R27: after forgetting, the words are in no file of the folder', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const record = recordOf('The passphrase is zebrafishlantern, spoken twice.');
  store.outbox.keep([record]);
  await store.outbox.flush(10_000);
  await store.memory.capture(
    FACTS.map((text) => recordOf(text)),
    patience(),
  );
  const holders = (): string[] =>
    readdirSync(folder).filter((file) =>
      readFileSync(join(folder, file)).toString('latin1').includes('zebrafishlantern'),
    );
  expect(holders().length).toBeGreaterThan(0);
  expect(await store.memory.forget({ words: 'zebrafishlantern' }, patience())).toBe(1);
  expect(holders()).toEqual([]);
});

test('an abort is answered at once, while the worker is still busy', async () => {
  const store = openStore(tempFolder());
  await store.health();
  const many = Array.from({ length: 64 }, (_, at) => recordOf(`${FACTS.join(' ')} number ${at}`));
  const capture = store.memory.capture(many, patience());
  const controller = new AbortController();
  const recall = store.memory.recall(questionOf('terraform state'), controller.signal);
  controller.abort();
  await expect(recall).rejects.toMatchObject({ reason: 'timeout' });
  await capture;
});

test('a torn write-ahead log of a killed process does not hide what was committed', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  await store.memory.capture([recordOf('The lighthouse is red.')], patience());
  const copy = join(tempFolder(), 'copy');
  mkdirSync(copy);
  for (const file of ['memory.db', 'memory.db-wal']) {
    writeFileSync(join(copy, file), readFileSync(join(folder, file)));
  }
  appendFileSync(join(copy, 'memory.db-wal'), Buffer.alloc(5000, 7));
  const { passages } = await openStore(copy).memory.recall(questionOf('lighthouse'), patience());
  expect(passages).toHaveLength(1);
});

const row = {
  id: '',
  at: 1,
  client: 'c',
  kind: 'main',
  dialect: 'anthropic_messages',
  model: 'm',
  space: 's',
  conversation: 'v',
  status: 200,
  end: 'complete',
  memoryMode: 'read-write',
  memoryState: 'empty',
  compressionMode: 'passthrough',
  continuityState: 'none',
  originalInputTokens: 1,
  forwardedInputTokens: 1,
  recalledTokens: 0,
  elidedItems: 0,
  elidedTokens: 0,
  ms: { recall: 1 },
} as const;

test('request rows are written in batches and listed newest first, or by id', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  for (let at = 0; at < 100; at += 1) store.requestLog.add({ ...row, id: `r${at}`, at });
  const newest = await store.requestLog.list({ limit: 2 });
  expect(newest).toEqual([
    { ...row, id: 'r99', at: 99 },
    { ...row, id: 'r98', at: 98 },
  ]);
  expect(await store.requestLog.list({ limit: 9, id: 'r7' })).toEqual([
    { ...row, id: 'r7', at: 7 },
  ]);
  await store.close();
  expect(await openStore(folder).requestLog.list({ limit: 1000 })).toHaveLength(100);
});

test('a recall does not wait for the captures that were asked for before it', async () => {
  const { memory } = openStore(tempFolder());
  await memory.capture([recordOf('The code word is marmalade.')], patience());
  const done: string[] = [];
  const bulk = Array.from({ length: 40 }, (_, nth) =>
    memory
      .capture(
        [recordOf(`Statement number ${nth} about the harvest.`, { conversation: 'c' })],
        patience(),
      )
      .then(() => done.push('capture')),
  );
  const { passages } = await memory
    .recall(questionOf('What is the code word?'), patience())
    .finally(() => done.push('recall'));
  await Promise.all(bulk);
  expect(passages.map(({ text }) => text)).toEqual(['The code word is marmalade.']);
  // One capture may be under way, and a few done before the question arrives.
  expect(done.indexOf('recall')).toBeLessThan(20);
  expect(done.filter((what) => what === 'capture')).toHaveLength(40);
});

test('a proof of what is held does not wait for the captures that were asked for before it', async () => {
  const { memory } = openStore(tempFolder());
  const output = outputRecordOf('what the build said');
  await memory.keepOutputs([output], patience());
  const done: string[] = [];
  const bulk = Array.from({ length: 40 }, (_, nth) =>
    memory
      .capture([recordOf(`Statement number ${nth} about the harvest.`)], patience())
      .then(() => done.push('capture')),
  );
  const question = { space: output.space, digests: [output.digest], nonce: new Uint8Array(32) };
  const held = await memory.hold(question, patience()).finally(() => done.push('hold'));
  await Promise.all(bulk);
  expect(held).toHaveLength(1);
  // As for a recall: one capture may be under way, and a few done before the question arrives.
  expect(done.indexOf('hold')).toBeLessThan(20);
});
