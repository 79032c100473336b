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
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { referenceOf, textDigest } from '../../src/core/memory/reference.ts';
import { rememberOwnSecrets } from '../../src/core/redaction/own-secrets.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { blockAddress, blockEntry, foundBlock } from '../support/ledger-entries.ts';
import { FACTS, outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { requestRow } from '../support/request-row.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

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
  await store.ledger.record([blockEntry('k')]);
  expect(modeOf(folder)).toBe(0o700);
  const files = readdirSync(folder);
  expect(files.length).toBeGreaterThanOrEqual(5);
  expect(files.filter((file) => modeOf(join(folder, file)) !== 0o600)).toEqual([]);
});

test("R26: the store's thread stores no output that holds a key of the configuration", async () => {
  const folder = tempFolder();
  const { memory } = openStore(folder);
  const early = outputRecordOf('The first plainpassphrase of all.');
  expect(await memory.capture([early], patience())).toEqual(['stored']);
  rememberOwnSecrets(['plainpassphrase-0417']);
  const late = outputRecordOf('Then plainpassphrase-0417 was printed.');
  expect(await memory.capture([late], patience())).toEqual(['rejected']);
  expect(readFileSync(join(folder, 'memory.db')).includes('passphrase-0417')).toBe(false);
  expect(readFileSync(join(folder, 'memory.db-wal')).includes('passphrase-0417')).toBe(false);
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
  await store.ledger.record([blockEntry('k', { block: 'b' })]);
  expect(await foundBlock(store.ledger, 'k')).toBe('b');
  const found = await store.ledger.find([blockAddress('k'), blockAddress('other')], 10_000);
  expect([found.missing, found.get(blockAddress('k'))?.block]).toEqual(['unavailable', 'b']);
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

const LONG_ANSWER = Array.from(
  { length: 12 },
  (_, at) =>
    `${at + 1}. Check that pgbouncer on staging is reachable and that the port is open before step ${at}.\n\n`,
).join('');

test.each([
  ['short answers', 'Noted.'],
  ['long answers', LONG_ANSWER],
])(
  'what changed comes before what it was and before the assistant, with both dates: %s',
  async (_, answer) => {
    const store = openStore(tempFolder());
    const day = (date: string) => ({ at: Date.parse(`${date}T10:00:00Z`), conversation: date });
    const theirs = { role: 'assistant', exchange: 0 } as const;
    await store.memory.capture(
      [
        recordOf('Staging pgbouncer listens on port 6432.', day('2026-05-11')),
        recordOf(`${answer} (one)`, { ...day('2026-05-11'), ...theirs }),
        recordOf('Staging pgbouncer listens on port 7432 now.', day('2026-05-27')),
        recordOf(`${answer} (two)`, { ...day('2026-05-27'), ...theirs }),
      ],
      patience(),
    );
    const question = questionOf('Which port does pgbouncer use on staging?');
    const { passages } = await store.memory.recall(question, patience());
    expect(passages[0]?.text).toBe('Staging pgbouncer listens on port 7432 now.');
    expect(passages.filter(({ role }) => role === 'user')).toHaveLength(2);
    const { text } = writeRecallBlock(passages, 512);
    expect(text).toMatch(
      /2026-05-11[^\n]*:\n- Staging[^]*6432[^]*2026-05-27[^\n]*:\n- Staging[^]*7432/,
    );
  },
);

test('a day in the question brings what was said then, whatever its words', async () => {
  const store = openStore(tempFolder());
  const now = Date.parse('2026-06-10T12:00:00Z');
  const at = (daysAgo: number): number => now - daysAgo * 86_400_000;
  await store.memory.capture(
    [
      recordOf('The kiosk gets a red roof.', { at: at(1), conversation: 'late' }),
      recordOf('The harbour gets a crane.', { at: at(20) }),
    ],
    patience(),
  );
  const ask = async (humanText: string, excludeDigests: readonly string[] = []) => {
    const question = questionOf(humanText, { now, excludeDigests });
    return (await store.memory.recall(question, patience())).passages.map(({ text }) => text);
  };
  expect(await ask('What did we do yesterday?')).toEqual(['The kiosk gets a red roof.']);
  expect(await ask('What did we do on May 21?')).toEqual(['The harbour gets a crane.']);
  expect(await ask('What did we do two months ago?')).toEqual([]);
  const { digest } = recordOf('The kiosk gets a red roof.');
  expect(await ask('What did we do yesterday?', [digest])).toEqual([]);
});

test('an order brings the rules that it falls under, of this space alone and never of the assistant', async () => {
  const store = openStore(tempFolder());
  const records = [
    recordOf('The build broke again. In this repository always use pnpm.', { at: 1 }),
    recordOf('Always use yarn.', { at: 2, role: 'assistant' }),
    recordOf('Never touch src/generated.', { at: 3, space: 'other' }),
    recordOf('Never write to the archive table.', { at: 4 }),
  ];
  await store.memory.capture(records, patience());
  const ask = async (text: string, digests: readonly string[] = []): Promise<string[]> => {
    const question = questionOf(text, { excludeDigests: digests });
    const { passages } = await store.memory.recall(question, patience());
    return passages.map((one) => one.text);
  };
  const wanted = ['In this repository always use pnpm.', 'Never write to the archive table.'];
  const order = 'install the package zod and add a column to the archive table';
  expect(await ask(order)).toEqual(wanted);
  expect(await ask(order, [records[0]?.digest ?? ''])).toEqual(wanted.slice(1));
  // No rule is about this.
  expect(await ask('rename the field customerId to clientId')).toEqual([]);
  expect(await ask('What did the zeppelin weigh?')).toEqual([]);
  expect(await ask('ok, do it')).toEqual([]);
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
  expect(await store.requestLog.list({ limit: 1, id: 'r98' })).toEqual([
    { ...row, id: 'r98', at: 98 },
  ]);
  // The beginning of an id is enough.
  const begun = await store.requestLog.list({ limit: 99, id: 'r7' });
  expect(begun.map(({ id }) => id)).toEqual(
    [79, 78, 77, 76, 75, 74, 73, 72, 71, 70, 7].map((at) => `r${at}`),
  );
  await store.close();
  expect(await openStore(folder).requestLog.list({ limit: 1000 })).toHaveLength(100);
});

/** Another process writes: what is to write here waits until it is released. */
async function holdWrites(folder: string): Promise<{ release(): void }> {
  const connection = loadDriver().open(join(folder, 'memory.db'));
  connection.exec('BEGIN IMMEDIATE');
  return {
    release: () => {
      connection.exec('ROLLBACK');
      connection.close();
    },
  };
}

test('a recall does not wait for the captures that were asked for before it', async () => {
  const folder = tempFolder();
  const { memory } = openStore(folder);
  await memory.capture([recordOf('The code word is marmalade.')], patience());
  const done: string[] = [];
  const other = await holdWrites(folder);
  const bulk = Array.from({ length: 40 }, (_, nth) =>
    memory
      .capture(
        [recordOf(`Statement number ${nth} about the harvest.`, { conversation: 'c' })],
        patience(),
      )
      .then(() => done.push('capture')),
  );
  const asked = memory
    .recall(questionOf('What is the code word?'), patience())
    .finally(() => done.push('recall'));
  other.release();
  const { passages } = await asked;
  await Promise.all(bulk);
  expect(passages.map(({ text }) => text)).toEqual(['The code word is marmalade.']);
  // Those alone that were under way when the question arrived.
  expect(done.indexOf('recall')).toBeLessThanOrEqual(2);
  expect(done.filter((what) => what === 'capture')).toHaveLength(40);
});

test('a proof of what is held does not wait for the captures that were asked for before it', async () => {
  const folder = tempFolder();
  const { memory } = openStore(folder);
  const output = outputRecordOf('what the build said');
  await memory.capture([output], patience());
  const done: string[] = [];
  const other = await holdWrites(folder);
  const bulk = Array.from({ length: 40 }, (_, nth) =>
    memory
      .capture([recordOf(`Statement number ${nth} about the harvest.`)], patience())
      .then(() => done.push('capture')),
  );
  const question = { space: output.space, digests: [output.digest], nonce: new Uint8Array(32) };
  const asked = memory.hold(question, patience()).finally(() => done.push('hold'));
  other.release();
  const held = await asked;
  await Promise.all(bulk);
  expect(held).toHaveLength(1);
  expect(done.indexOf('hold')).toBeLessThanOrEqual(2);
});

test('the request log gives back one conversation, the newest row first', async () => {
  const store = openStore(tempFolder());
  for (const at of [1, 2, 3, 4, 5]) {
    const conversation = at % 2 === 0 ? 'other' : "it's";
    store.requestLog.add(requestRow({ id: `r${at}`, at, conversation }));
  }
  const idsOf = async (conversation: string, limit: number): Promise<string[]> =>
    (await store.requestLog.conversation({ conversation, limit })).map(({ id }) => id);
  expect(await idsOf("it's", 10)).toEqual(['r5', 'r3', 'r1']);
  expect(await idsOf("it's", 2)).toEqual(['r5', 'r3']);
  expect(await idsOf('none', 10)).toEqual([]);
});

test('warming finds nothing, everything or no memory at all, and changes and rejects nothing', async () => {
  const empty = openStore(tempFolder());
  await empty.warm();
  expect((await empty.health()).records).toBe(0);
  const store = openStore(tempFolder());
  await store.memory.capture(
    FACTS.map((fact) => recordOf(fact)),
    patience(),
  );
  await store.warm();
  expect((await store.health()).records).toBe(FACTS.length);
  const { passages } = await store.memory.recall(questionOf(FACTS[0] ?? ''), patience());
  expect(passages.length).toBeGreaterThan(0);
  await store.close();
  await store.warm();
});

test('a short reference that fits two texts names none, also if one of them is in two spaces', async () => {
  const { memory } = openStore(tempFolder());
  const starts = new Map<string, string>();
  let ref = '';
  let same: readonly string[] = [];
  for (let at = 0; same.length === 0; at += 1) {
    const text = `The harbour has ${at} ships.`;
    const short = referenceOf(textDigest('user', text)).slice(0, 6);
    const earlier = starts.get(short);
    if (earlier === undefined) starts.set(short, text);
    else [same, ref] = [[earlier, text], short];
  }
  const sorted = same.toSorted((one, other) =>
    referenceOf(textDigest('user', one)) < referenceOf(textDigest('user', other)) ? -1 : 1,
  );
  const [first = '', second = ''] = sorted;
  const places = ['a', 'b'].map((space) => recordOf(first, { space }));
  await memory.capture(places, patience());
  expect((await memory.retrieve({ ref }, patience()))?.text).toBe(first);
  await memory.capture([recordOf(second, { space: 'a' })], patience());
  expect(await memory.retrieve({ ref }, patience())).toBeUndefined();
});
