import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Journal } from '../../src/adapters/journals/journal.ts';
import { rowOf } from '../../src/adapters/journals/ledger-row.ts';
import { JournalLedger } from '../../src/adapters/journals/ledger.ts';
import { StoreClient } from '../../src/adapters/store/client.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { referenceOf } from '../../src/core/memory/reference.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import { runCli } from '../support/cli.ts';
import { blockAddress, blockEntry, foundBlock } from '../support/ledger-entries.ts';
import { ledgerBytes } from '../support/ledger-bytes.ts';
import { FACTS, outputRecordOf, questionOf, recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

function openStore(folder: string): EmbeddedStore {
  const store = openEmbeddedStore({ folder, report: () => undefined });
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
    blockEntry('quoting', { block }),
    blockEntry('other', { block: other }),
  ]);
  const generation = store.ledger.generation();
  const holders = (): string[] =>
    readdirSync(folder).filter((file) =>
      readFileSync(join(folder, file)).toString('latin1').includes('zebrafishlantern'),
    );
  expect(block).toContain('zebrafishlantern');
  await expect.poll(() => holders().filter((file) => file.endsWith('.journal'))).toEqual([]);
  expect(holders().length).toBeGreaterThan(0);
  expect(await store.memory.forget({ words: 'zebrafishlantern' }, patience())).toBe(2);
  expect(holders()).toEqual([]);
  expect(store.ledger.generation()).not.toBe(generation);
  expect(await foundBlock(store.ledger, 'quoting')).toBe('');
  expect(await foundBlock(store.ledger, 'other')).toBe(other);
});

test('R26: a standing instruction that was forgotten is no more in what was placed', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const record = recordOf('The build broke again. In this repository always use pnpm.');
  await store.memory.capture([record], patience());
  const { passages } = await store.memory.recall(questionOf('rename the field'), patience());
  const { text: block } = writeRecallBlock(passages, 512);
  expect(block).toContain('\n- In this repository always use pnpm.\n');
  await store.ledger.record([blockEntry('order', { block })]);
  await expect.poll(() => ledgerBytes(folder)).toBe(0);
  await store.memory.forget({ refs: [referenceOf(record.digest)] }, patience());
  expect(await foundBlock(store.ledger, 'order')).toBe('');
});

/** A record and the block that quotes it, as a proxy placed it. */
async function placedIn(store: EmbeddedStore, text: string) {
  const record = recordOf(text);
  await store.memory.capture([record], patience());
  const { passages } = await store.memory.recall(questionOf(text), patience());
  const { text: block } = writeRecallBlock(passages, 512);
  const entry = blockEntry('placed', { block, at: Date.now() });
  return { ref: referenceOf(record.digest), entry };
}

test('R26: svc memory forget reaches what a killed process placed and left in its journal', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const { ref, entry } = await placedIn(store, 'The passphrase is zebrafishlantern.');
  const journal = new Journal({ folder, name: 'ledger', bytesMax: 1_000_000 });
  journal.append([JSON.stringify(rowOf(entry))]);
  journal.close();
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  const [file = ''] = readdirSync(folder).filter((name) => name.startsWith('ledger-'));
  renameSync(join(folder, file), join(folder, file.replace(`-${process.pid}-`, `-${pid}-`)));
  const env = { SVC_DATA_HOME: folder };
  const { code } = await runCli(['memory', 'forget', ref, '--yes'], { home: folder, env });
  expect(code).toBe(0);
  expect(await foundBlock(store.ledger, 'placed')).toBe('');
  const holders = readdirSync(folder).filter((name) =>
    readFileSync(join(folder, name)).includes('zebrafishlantern'),
  );
  expect(holders).toEqual([]);
});

test('R26: what another process placed is forgotten there too, though it is in no table yet', async () => {
  const folder = tempFolder();
  const store = openStore(folder);
  const { ref, entry } = await placedIn(store, 'The passphrase is zebrafishlantern.');
  const client = new StoreClient({ folder, report: () => undefined });
  onTestFinished(() => client.close());
  const table = { isAway: true };
  const ledger = new JournalLedger({
    folder,
    report: () => undefined,
    store: {
      findEntries: (keys) => client.call('findEntries', keys),
      recordEntries: async (entries) => {
        if (table.isAway) throw new Error('away');
        await client.call('recordEntries', entries);
      },
    },
  });
  onTestFinished(() => ledger.close());
  await ledger.record([entry]);
  expect(await foundBlock(ledger, 'placed')).toBe(entry.block);
  await store.memory.forget({ refs: [ref] }, patience());
  const found = await ledger.find([blockAddress('placed')], 10_000);
  expect([found.missing, found.has(blockAddress('placed'))]).toEqual(['unavailable', false]);
  table.isAway = false;
  expect(await foundBlock(ledger, 'placed')).toBe('');
  expect(await foundBlock(store.ledger, 'placed')).toBe('');
  await ledger.record([blockEntry('later', { block: entry.block, at: Date.now() + 1 })]);
  await ledger.close();
  expect(await foundBlock(store.ledger, 'later')).toBe(entry.block);
});

test('R26: what waits in an outbox, of a dead process or a living one, is forgotten as well', async () => {
  const folder = tempFolder();
  const left = (text: string, pid = process.pid): void => {
    const journal = new Journal({ folder, name: 'outbox', bytesMax: 1_000_000 });
    journal.append([JSON.stringify(recordOf(text))]);
    journal.close();
    const files = readdirSync(folder).filter((name) => name.includes(`-${process.pid}-`));
    const [file = ''] = files.filter((name) => name.startsWith('outbox-'));
    renameSync(join(folder, file), join(folder, file.replace(`-${process.pid}-`, `-${pid}-`)));
  };
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  left('The dead passphrase is zebrafishlantern.', pid);
  left('The living passphrase is zebrafishlantern.', process.ppid);
  left('The living staging port is 6431.', process.ppid);
  const env = { SVC_DATA_HOME: folder };
  const words = ['memory', 'forget', '--search', 'zebrafishlantern', '--yes', '--json'];
  expect((await runCli(words, { home: folder, env })).stdout).toContain('"forgotten": 2');
  const store = openStore(folder);
  const late = ['The living passphrase is zebrafishlantern.', 'The living staging port is 6431.'];
  const states = await store.memory.capture(
    late.map((text) => recordOf(text)),
    patience(),
  );
  expect(states).toEqual(['forgotten', 'stored']);
  expect(await store.memory.list({ limit: 10, words: 'zebrafishlantern' }, patience())).toEqual([]);
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
