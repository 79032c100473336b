import { spawnSync } from 'node:child_process';
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Journal } from '../../src/adapters/journals/journal.ts';
import { rowOf } from '../../src/adapters/journals/ledger-row.ts';
import type { LedgerRow } from '../../src/ports/ledger.ts';
import { JournalLedger, type LedgerStore } from '../../src/adapters/journals/ledger.ts';
import { StoreClient } from '../../src/adapters/store/client.ts';
import { keyOf, type LedgerEntry } from '../../src/core/ledger/entries.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import {
  blockAddress,
  blockEntry,
  foundBlock,
  foundBlocks,
  foundEntries,
} from '../support/ledger-entries.ts';
import { tempFolder } from '../support/temp-folder.ts';

class MapStore implements LedgerStore {
  readonly rows = new Map<string, LedgerRow>();
  readonly asked: (readonly string[])[] = [];
  isAway = false;

  async findEntries(keys: readonly string[]): Promise<readonly LedgerRow[]> {
    this.asked.push(keys);
    if (this.isAway) throw new Error('away');
    return keys.flatMap((key) => this.rows.get(key) ?? []);
  }

  async recordEntries(rows: readonly LedgerRow[]): Promise<void> {
    if (this.isAway) throw new Error('away');
    for (const row of rows) this.rows.set(row.key, row);
  }

  put(name: string): void {
    const row = rowOf(blockEntry(name));
    this.rows.set(row.key, row);
  }
}

function openLedger(folder: string, store: LedgerStore): JournalLedger {
  const ledger = new JournalLedger({ folder, store, report: () => undefined });
  onTestFinished(() => ledger.close());
  return ledger;
}

test('an entry is found right after it was recorded, without asking the table', async () => {
  const store = new MapStore();
  const ledger = openLedger(tempFolder(), store);
  const entries = [
    blockEntry('a'),
    blockEntry('b', { block: '', form: 'part', dropsEarlier: true }),
  ];
  await ledger.record(entries);
  const found = await ledger.find(['a', 'b'].map(blockAddress), 30_000);
  expect(['a', 'b'].map((name) => found.get(blockAddress(name)))).toEqual(entries);
  expect(store.asked).toEqual([]);
});

test('long blocks are kept at hand up to 4 MiB, and the table has the older ones', async () => {
  const store = new MapStore();
  const ledger = openLedger(tempFolder(), store);
  const block = 'x'.repeat(2_000);
  const entries = Array.from({ length: 3_000 }, (_, at) => blockEntry(`${at}`, { block }));
  await ledger.record(entries);
  await expect.poll(() => store.rows.size).toBe(3_000);
  // Once all are in the table, only the newest 4 MiB are still at hand.
  await ledger.record([blockEntry('last')]);
  await expect.poll(() => store.rows.size).toBe(3_001);
  expect(await foundBlock(ledger, '2999')).toBe(block);
  expect(await foundBlock(ledger, '1500')).toBe(block);
  expect(store.asked).toEqual([]);
  expect(await foundBlock(ledger, '0')).toBe(block);
  expect(store.asked.length).toBe(1);
});

test('unknown keys are asked for once, in one batch, and what is absent is remembered', async () => {
  const store = new MapStore();
  store.put('old');
  const ledger = openLedger(tempFolder(), store);
  const names = ['old', 'none', 'neither'];
  const known = ['block of old', undefined, undefined];
  expect(await foundBlocks(ledger, names)).toEqual(known);
  expect(await foundBlocks(ledger, names)).toEqual(known);
  expect(store.asked).toEqual([names.map((name) => keyOf(blockAddress(name)))]);
  await ledger.record([blockEntry('none')]);
  expect(await foundBlock(ledger, 'none')).toBe('block of none');
});

test('a table that cannot be read leaves the ledger unknown, and is asked again', async () => {
  const store = new MapStore();
  store.put('old');
  store.isAway = true;
  const ledger = openLedger(tempFolder(), store);
  const found = await ledger.find([blockAddress('old')], 10_000);
  expect([found.missing, found.has(blockAddress('old'))]).toEqual(['unavailable', false]);
  store.isAway = false;
  expect(await foundBlock(ledger, 'old')).toBe('block of old');
});

test('the entries of a killed process are there for the first request of the next one', async () => {
  const folder = tempFolder();
  const store = new MapStore();
  store.isAway = true;
  const first = openLedger(folder, store);
  await first.record([blockEntry('a')]);
  await first.close();
  leaveBehind(folder);

  store.isAway = false;
  const second = openLedger(folder, store);
  expect(await foundBlock(second, 'a')).toBe('block of a');
  await second.close();
  expect(store.rows.get(keyOf(blockAddress('a')))?.block).toBe('block of a');
  expect(readdirSync(folder)).toEqual([]);
});

/** The journal in the folder is that of a process that is dead. */
function leaveBehind(folder: string): void {
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  const [file = ''] = readdirSync(folder).filter((name) => name.startsWith('ledger-'));
  renameSync(join(folder, file), join(folder, file.replace(`-${process.pid}-`, `-${pid}-`)));
}

test('two processes on one folder see the entries of each other', async () => {
  const folder = tempFolder();
  const open = () => openEmbeddedStore({ folder, report: () => undefined });
  const [one, two] = [open(), open()];
  await one.ledger.record([blockEntry('a', { at: 5 })]);
  await one.close();
  expect(await foundBlock(two.ledger, 'a')).toBe('block of a');
  await two.close();
});

test('of two entries for one key the later one stays, in whatever order they arrive', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  await store.ledger.record([blockEntry('a', { at: 9, block: 'new' })]);
  await store.ledger.record([blockEntry('b', { at: 1 })]);
  await store.close();
  const again = openEmbeddedStore({ folder, report: () => undefined });
  await again.ledger.record([blockEntry('c', { at: 9 })]);
  expect(await foundBlock(again.ledger, 'a')).toBe('new');
  await again.close();
});

test('an entry that conversations share is written once, in this process and in the next one', async () => {
  const folder = tempFolder();
  const shared = { kind: 'shared-block', tenant: 'local', space: 's', fingerprint: 'f' } as const;
  const fact = { form: 'text', dropsEarlier: false } as const;
  const open = () => openEmbeddedStore({ folder, report: () => undefined });
  const one = open();
  await one.ledger.record([{ ...shared, ...fact, block: 'first', at: 1 }]);
  await one.ledger.record([{ ...shared, ...fact, block: 'second', at: 2 }]);
  expect((await foundEntries(one.ledger, [shared])).get(shared)?.block).toBe('first');
  await one.close();
  const two = open();
  // Nobody asked the table before: the second process does not know that there is one.
  await two.ledger.record([{ ...shared, ...fact, block: 'third', at: 3 }]);
  await two.close();
  const three = open();
  expect((await foundEntries(three.ledger, [shared])).get(shared)?.block).toBe('first');
  await three.close();
});

test('law 4: a table that does not answer leaves the rest unknown, in time, and known entries known', async () => {
  const store = new MapStore();
  const ledger = openLedger(tempFolder(), store);
  await ledger.record([blockEntry('known')]);
  const asked = ['known', 'a'].map(blockAddress);
  store.findEntries = () => new Promise(() => {});
  const late = await ledger.find(asked, 20);
  expect([late.missing, late.get(blockAddress('known'))?.block]).toEqual([
    'late',
    'block of known',
  ]);
  store.findEntries = () => Promise.reject(new Error('gone'));
  const gone = await ledger.find([...asked, blockAddress('b')], 10_000);
  expect([gone.missing, gone.has(blockAddress('known'))]).toEqual(['unavailable', true]);
});

const OWNER = { tenant: 'local', space: 'default', conversation: 'c1' };
const AT_ITEM = { tenant: 'local', space: 'default', fingerprint: 'F' };

/** Rows as release 0.1.2 wrote them, and what they say. */
const EARLIER: readonly (readonly [string, string, LedgerEntry])[] = [
  [
    'e:F:default:c1',
    'block',
    { kind: 'own-block', ...OWNER, fingerprint: 'F', ...textBlock('block'), at: 7 },
  ],
  ['l:F:default', 'block', { kind: 'shared-block', ...AT_ITEM, ...textBlock('block'), at: 7 }],
  ['refused:default:c1', '', { kind: 'refusal', change: 'recall', ...OWNER, at: 7 }],
  ['refused-shortening:default:c1', '', { kind: 'refusal', change: 'shortening', ...OWNER, at: 7 }],
  ['cut:F:default', '', { kind: 'cut-answer', ...AT_ITEM, at: 7 }],
  [
    'x:F:default',
    '5 abc ~def',
    {
      kind: 'shared-batch',
      elision: 'real',
      ...AT_ITEM,
      leftOut: { before: 5, stubForm: 1, marks: ['abc', '~def'] },
      at: 7,
    },
  ],
  [
    'y:F:default',
    'whole',
    { kind: 'shared-batch', elision: 'shadow', ...AT_ITEM, leftOut: 'nothing', at: 7 },
  ],
  ['mx:F:default', '', { kind: 'batch-mark', elision: 'real', ...AT_ITEM, at: 7 }],
  [
    'u:F:default',
    '120 100',
    { kind: 'provider-count', ...AT_ITEM, counted: 120, estimated: 100, at: 7 },
  ],
  [
    'not-worth-it:default:c1',
    'send_all',
    { kind: 'verdict', ...OWNER, verdict: 'send_all', at: 7 },
  ],
];

function textBlock(block: string) {
  return { block, form: 'text', dropsEarlier: false } as const;
}

test.each([['in its table'], ['in the journal of a killed process']])(
  'the ledger of an earlier release is read: %s',
  async (where) => {
    const folder = tempFolder();
    const rows = EARLIER.map(([key, block]) => ({ key, ...textBlock(block), at: 7 }));
    if (where === 'in its table') {
      const client = new StoreClient({ folder, report: () => undefined });
      await client.call('recordEntries', rows);
      await client.close();
    } else {
      const journal = new Journal({ folder, name: 'ledger', bytesMax: 1_000_000 });
      journal.append(rows.map((row) => JSON.stringify(row)));
      journal.close();
      leaveBehind(folder);
    }
    const store = openEmbeddedStore({ folder, report: () => undefined });
    const entries = EARLIER.map(([, , entry]) => entry);
    const found = await foundEntries(store.ledger, entries);
    expect(entries.map((entry) => found.get(entry))).toEqual(entries);
    await store.close();
  },
);
