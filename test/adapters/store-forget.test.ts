import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { stateFile } from '../../src/adapters/files/database-file.ts';
import { STORE_TARGET } from '../../src/adapters/state/outbox.ts';
import { openState } from '../../src/adapters/state/state.ts';
import { openDatabase } from '../../src/adapters/store/database.ts';
import { Descriptors } from '../../src/adapters/store/descriptors.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { Outputs } from '../../src/adapters/store/outputs.ts';
import { Records } from '../../src/adapters/store/records.ts';
import { Store } from '../../src/adapters/store/store.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { quotedRecords } from '../../src/core/recall/quoted-records.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { runCli } from '../support/cli.ts';
import { holdersOf, plantIn } from '../support/forgotten-bytes.ts';
import { blockEntry, foundBlock } from '../support/ledger-entries.ts';
import { FACTS, outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { MemoryError } from '../../src/core/errors.ts';
import { keepThreads } from '../support/same-thread.ts';

keepThreads();

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

/** The store looks again soon, where it otherwise waits for seconds; sooner, a look would meet the one before, or the work of the start. */
const SOON = { lookMs: 500, eraseRestMs: 10 };

function openStore(folder: string, times: Partial<typeof SOON> = {}): EmbeddedStore {
  const store = openEmbeddedStore({ folder, report: () => undefined, ...times });
  onTestFinished(() => store.close());
  return store;
}

test('R26, R27: after forgetting, the words are in no file of the folder, nor in what was placed', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const record = recordOf('The passphrase is zebrafishlantern, spoken twice.');
  store.outbox.keep([record]);
  await store.outbox.flush(30_000);
  await store.memory.capture(
    FACTS.map((text) => recordOf(text)),
    patience(),
  );
  const output = outputRecordOf('The log says zebrafishlantern too.');
  await store.memory.capture([output], patience());
  const { passages } = await store.memory.recall(questionOf('which passphrase'), patience());
  const { text: block } = writeRecallBlock(passages, 512);
  const other = writeRecallBlock([{ ...record, text: 'Something else.' }], 512).text;
  await store.ledger.record([
    blockEntry('quoting', { block, quoted: quotedRecords(block, { passages }) }),
    blockEntry('other', { block: other, quoted: [{ ref: referenceOf(other), space: 'project' }] }),
  ]);
  const generation = store.ledger.generation();
  const holders = (): string[] =>
    readdirSync(folder).filter((file) =>
      readFileSync(join(folder, file)).toString('latin1').includes('zebrafishlantern'),
    );
  expect(block).toContain('zebrafishlantern');
  expect(holders().length).toBeGreaterThan(0);
  expect(await store.memory.forget({ words: 'zebrafishlantern' }, patience())).toBe(2);
  expect(holders()).toEqual([]);
  expect(store.ledger.generation()).not.toBe(generation);
  expect(await foundBlock(store.ledger, 'quoting')).toBe('');
  expect(await foundBlock(store.ledger, 'other')).toBe(other);
});

test('R26: a rule that was forgotten is no more in what was placed', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const record = recordOf('The build broke again. In this repository always use pnpm.');
  await store.memory.capture([record], patience());
  const { passages } = await store.memory.recall(questionOf('install the package zod'), patience());
  const { text: block } = writeRecallBlock(passages, 512);
  expect(block).toContain('\n- In this repository always use pnpm.\n');
  const quoted = quotedRecords(block, { passages });
  await store.ledger.record([blockEntry('order', { block, quoted })]);
  await store.memory.forget({ refs: [referenceOf(record.digest)] }, patience());
  expect(await foundBlock(store.ledger, 'order')).toBe('');
});

/** A record and the block that quotes it, as a proxy placed it. */
async function placedIn(store: EmbeddedStore, text: string) {
  const record = recordOf(text);
  await store.memory.capture([record], patience());
  const { passages } = await store.memory.recall(questionOf(text), patience());
  const { text: block } = writeRecallBlock(passages, 512);
  const quoted = quotedRecords(block, { passages });
  const entry = blockEntry('placed', { block, quoted, at: Date.now() });
  return { ref: referenceOf(record.digest), entry };
}

test('R26: svc memory forget reaches what a proxy placed that runs, in every file', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const { ref, entry } = await placedIn(store, 'The passphrase is zebrafishlantern.');
  await store.ledger.record([entry]);
  expect(await foundBlock(store.ledger, 'placed')).toBe(entry.block);
  const generation = store.ledger.generation();
  const env = { SVC_DATA_HOME: folder };
  const { code } = await runCli(['memory', 'forget', ref, '--yes'], { home: folder, env });
  expect(code).toBe(0);
  expect(store.ledger.generation()).not.toBe(generation);
  expect(await foundBlock(store.ledger, 'placed')).toBe('');
  expect(holdersOf(folder, 'zebrafishlantern')).toEqual([]);
});

test('R26: a block that was recalled before a forget, and is recorded after it, is not placed', async () => {
  const folder = tempFolder();
  const [proxy, commandLine] = [openStore(folder), openStore(folder)];
  const { ref, entry } = await placedIn(proxy, 'The passphrase is zebrafishlantern.');
  proxy.ledger.generation();
  await commandLine.memory.forget({ refs: [ref] }, patience());
  expect(await proxy.ledger.commit([entry])).toBe(false);
  expect(await foundBlock(proxy.ledger, 'placed')).toBeUndefined();
  // Whoever knows of the forgetting has recalled since then.
  expect(await proxy.ledger.commit([entry])).toBe(true);
});

test('R26: what waits for a lock while something is forgotten is written without its block', async () => {
  const folder = tempFolder();
  const [proxy, commandLine] = [openStore(folder), openStore(folder)];
  const { ref, entry } = await placedIn(proxy, 'The passphrase is zebrafishlantern.');
  await proxy.ledger.record([blockEntry('first')]);
  const connection = loadDriver().open(stateFile(folder));
  connection.exec('BEGIN IMMEDIATE');
  await proxy.ledger.record([entry]);
  expect(await foundBlock(proxy.ledger, 'placed')).toBe(entry.block);
  const forgetting = commandLine.memory.forget({ refs: [ref] }, patience());
  await sleep(50);
  // The waiting entry is tried again every 2 ms and the forgetting waits: either may come first.
  connection.exec('ROLLBACK');
  connection.close();
  await forgetting;
  await proxy.state.writer.caughtUp(30_000);
  expect(await foundBlock(proxy.ledger, 'placed')).toBe('');
});

test.each([0, 1])(
  'R26: a forget that was interrupted after %i parts is ended by the next start',
  async (parts) => {
    const folder = tempFolder();
    const store = openEmbeddedStore({ folder, report: () => undefined });
    const { entry } = await placedIn(store, 'The passphrase is zebrafishlantern.');
    const later = recordOf('The second passphrase is zebrafishlantern too.');
    await store.ledger.record([entry]);
    expect(store.outbox.keep([later])).toBe(true);
    await store.close();
    interrupt(folder, parts);
    const next = openStore(folder);
    await expect.poll(() => foundBlock(next.ledger, 'placed')).toBe('');
    await next.close();
    expect(holdersOf(folder, 'zebrafishlantern')).toEqual([]);
  },
);

test('R26: the process that runs ends what another one was interrupted in', async () => {
  const folder = tempFolder();
  const running = openStore(folder, SOON);
  const { entry } = await placedIn(running, 'The passphrase is zebrafishlantern.');
  const later = recordOf('The second passphrase is zebrafishlantern too.');
  await running.ledger.record([entry]);
  await running.memory.capture([later], patience());
  interrupt(folder, 1);
  expect(holdersOf(folder, 'zebrafishlantern')).not.toEqual([]);
  await expect.poll(() => holdersOf(folder, 'zebrafishlantern')).toEqual([]);
  expect(await foundBlock(running.ledger, 'placed')).toBe('');
});

test('R26: a forget that was interrupted behind the outputs alone is ended by the next start', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const output = outputRecordOf('The zebrafishlantern output.');
  await store.memory.capture([output], patience());
  store.memory.keepFiles(output.space, [output.digest]);
  await expect.poll(() => holdersOf(folder, 'zebrafishlantern').length).toBeGreaterThan(1);
  await store.close();
  const database = openDatabaseIn(folder);
  expect(new Outputs(database).forget({ words: 'zebrafishlantern' }, 1)).toBe(1);
  database.close();
  plantIn(join(folder, 'memory.db'), 'zebrafishlantern');
  const next = openStore(folder);
  await expect.poll(() => holdersOf(folder, 'zebrafishlantern')).toEqual([]);
  await next.close();
});

test('R26: a captured text that waits for its tombstone to be looked at is in no file either', async () => {
  const folder = tempFolder();
  const state = openState({ folder, report: () => undefined });
  const away = { capture: () => Promise.reject(new MemoryError('unavailable', 'away')) };
  const waiting = recordOf('The passphrase is zebrafishlantern.');
  expect(state.outboxFor(STORE_TARGET, away).keep([waiting])).toBe(true);
  await state.close();
  // As `forget` begins, killed before it comes to the outbox.
  const database = openDatabaseIn(folder);
  const records = new Records(database);
  records.capture([recordOf('The weather is fine.')]);
  expect(records.bury([waiting], 1)).toBe(1);
  database.close();
  // Nothing delivers the captures here.
  const store = new Store({ folder, descriptors: new Descriptors(), report: () => undefined });
  const last = await store.call('emptyForgotten', undefined);
  expect(await store.call('eraseForgotten', last)).toBe(true);
  expect(holdersOf(folder, 'zebrafishlantern')).toEqual([]);
  await store.call('close', undefined);
});

test('R26: the words are gone from the bytes of the files that SQLite does not use', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const { ref, entry } = await placedIn(store, 'The passphrase is zebrafishlantern.');
  await store.ledger.record([entry]);
  await store.close();
  for (const file of ['memory.db', 'state.db']) plantIn(join(folder, file), 'OLDzebrafishlantern');
  const next = openStore(folder);
  await next.memory.forget({ refs: [ref] }, patience());
  expect(holdersOf(folder, 'zebrafishlantern')).toEqual([]);
});

test('R26: beside a program that reads the file, a forget says so, and the words go once it has ended', async () => {
  const folder = tempFolder();
  const lines: string[] = [];
  const store = openEmbeddedStore({ folder, report: (line) => lines.push(line), ...SOON });
  onTestFinished(() => store.close());
  const { ref } = await placedIn(store, 'The passphrase is zebrafishlantern.');
  const reader = loadDriver().open(join(folder, 'memory.db'));
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM records').get();
  const logBytes = statSync(join(folder, 'memory.db-wal')).size;
  expect(await store.memory.forget({ refs: [ref] }, patience())).toBe(1);
  expect(lines.join()).toContain('Another program reads');
  expect(holdersOf(folder, 'zebrafishlantern')).not.toEqual([]);
  // No attempt has written the file once more.
  expect(statSync(join(folder, 'memory.db-wal')).size).toBeLessThan(logBytes + 100_000);
  reader.exec('COMMIT');
  reader.close();
  await expect.poll(() => holdersOf(folder, 'zebrafishlantern'), { timeout: 50_000 }).toEqual([]);
}, 120_000);

function openDatabaseIn(folder: string) {
  const descriptors = new Descriptors();
  const driver = loadDriver();
  return openDatabase({ folder, driver, descriptors, now: 1, report: () => undefined });
}

/** Begins as `forget` does, deletes some of the memories, and ends before it comes to the ledger. */
function interrupt(folder: string, parts: number): void {
  const database = openDatabaseIn(folder);
  const records = new Records(database);
  expect(records.beginForget({ words: 'zebrafishlantern' })).toBe(2);
  for (let part = 0; part < parts; part += 1) records.forgetSome(1);
  database.checkpoint();
  database.close();
}

test('R26: a forget whose caller gives up leaves no file of what it has deleted, and is ended later', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const output = outputRecordOf('The zebrafishlantern output.');
  const facts = Array.from({ length: 600 }, (_, at) => recordOf(`Berth ${at}: zebrafishlantern.`));
  await store.memory.capture([output, ...facts], patience());
  store.memory.keepFiles(output.space, [output.digest]);
  await expect.poll(() => holdersOf(folder, 'zebrafishlantern output').length).toBeGreaterThan(1);
  const giveUp = new AbortController();
  const parts: number[] = [];
  const forgetting = store.memory.forget({ space: output.space }, giveUp.signal, (done, all) => {
    parts.push(done, all);
    giveUp.abort();
  });
  await expect(forgetting).rejects.toThrow('time');
  expect(parts).toEqual([256, 601]);
  expect(holdersOf(folder, 'zebrafishlantern output')).toEqual([]);
  await store.close();
  const next = openStore(folder);
  await expect
    .poll(() => next.memory.list({ limit: 1 }, patience()), { timeout: 20_000 })
    .toEqual([]);
  expect(await next.memory.capture(facts.slice(-1), patience())).toEqual(['forgotten']);
  // The rows go first, and unused bytes of the files after them.
  await expect.poll(() => holdersOf(folder, 'zebrafishlantern'), { timeout: 20_000 }).toEqual([]);
  await next.close();
});

test('R26: a clock that was ahead while something was forgotten empties no later block', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  const { ref, entry } = await placedIn(store, 'The passphrase is zebrafishlantern.');
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 86_400_000);
  await store.memory.forget({ refs: [ref] }, patience());
  clock.mockRestore();
  store.ledger.generation();
  await store.ledger.record([{ ...entry, at: Date.now() }]);
  expect(await foundBlock(store.ledger, 'placed')).toBe(entry.block);
  await store.close();
  const next = openStore(folder);
  await next.ledger.record([blockEntry('other')]);
  expect(await foundBlock(next.ledger, 'placed')).toBe(entry.block);
});

test('R26: what waits in the outbox is forgotten as well, and does not come back', async () => {
  const folder = tempFolder();
  const state = openState({ folder, report: () => undefined });
  const away = { capture: () => Promise.reject(new MemoryError('unavailable', 'away')) };
  const outbox = state.outboxFor(STORE_TARGET, away);
  const texts = [
    'The passphrase is zebrafishlantern.',
    'The other passphrase is zebrafishlantern.',
    'The staging port is 6431.',
  ];
  expect(outbox.keep(texts.map((text) => recordOf(text)))).toBe(true);
  outbox.close();
  await state.close();
  const env = { SVC_DATA_HOME: folder };
  const words = ['memory', 'forget', '--search', 'zebrafishlantern', '--yes', '--json'];
  expect((await runCli(words, { home: folder, env })).stdout).toContain('"forgotten": 2');
  const store = openStore(folder);
  const states = await store.memory.capture(
    texts.map((text) => recordOf(text)),
    patience(),
  );
  expect(states).toEqual(['forgotten', 'forgotten', 'duplicate']);
  expect(await store.memory.list({ limit: 10, words: 'zebrafishlantern' }, patience())).toEqual([]);
  expect(holdersOf(folder, 'zebrafishlantern')).toEqual([]);
});

test('forgetting by words takes outputs that hold them all, and no others', async () => {
  const { memory } = openStore(tempFolder());
  const outputs = ['tangerine vault log', 'vault log', 'tangerine vault'].map((text, at) =>
    outputRecordOf(text, { space: at === 2 ? 'other' : 'project' }),
  );
  await memory.capture(outputs, patience());
  const filter = { words: 'Vault tangerines', space: 'project' };
  expect(await memory.forget({ words: 'the' }, patience())).toBe(0);
  expect(await memory.forget(filter, patience())).toBe(1);
  expect(await memory.retrieve(outputs[0] ?? { ref: '' }, patience())).toBeUndefined();
  expect(await memory.retrieve(outputs[2] ?? { ref: '' }, patience())).toBeDefined();
});

test('what another process forgets is recalled no more, though it was recalled just before', async () => {
  const folder = tempFolder();
  const [proxy, commandLine] = [openStore(folder).memory, openStore(folder).memory];
  const [gone, kept] = [
    recordOf('The vault code is tangerine.', { exchange: 1 }),
    recordOf('The vault door is on the second floor.', { exchange: 2 }),
  ];
  await proxy.capture([gone, kept], patience());
  const texts = async () =>
    (await proxy.recall(questionOf('What about the vault?'), patience())).passages.map(
      ({ text }) => text,
    );
  expect((await texts()).toSorted()).toEqual([gone.text, kept.text]);
  await commandLine.forget({ refs: [referenceOf(gone.digest)] }, patience());
  expect(await texts()).toEqual([kept.text]);
});
