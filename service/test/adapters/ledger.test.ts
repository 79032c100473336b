import { readdirSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { rowOf } from '../../../src/adapters/state/ledger-row.ts';
import type { LedgerRow } from '../../../src/ports/ledger.ts';
import { JournalLedger, type LedgerStore } from '../../src/adapters/journals/ledger.ts';
import { keyOf } from '../../../src/core/ledger/entries.ts';
import {
  blockAddress,
  blockEntry,
  foundBlock,
  foundBlocks,
  foundEntries,
} from '../../../test/support/ledger-entries.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

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
  const entries = [blockEntry('a'), blockEntry('b', { block: '', form: 'part', space: '' })];
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

  store.isAway = false;
  const second = openLedger(folder, store);
  expect(await foundBlock(second, 'a')).toBe('block of a');
  await second.close();
  expect(store.rows.get(keyOf(blockAddress('a')))?.block).toBe('default\nblock of a');
  expect(readdirSync(folder)).toEqual([]);
});

test('an entry that conversations share is written once', async () => {
  const ledger = openLedger(tempFolder(), new MapStore());
  const shared = { kind: 'shared-block', tenant: 't', scope: 's', fingerprint: 'f' } as const;
  const fact = { form: 'text', space: 'shop' } as const;
  await ledger.record([{ ...shared, ...fact, block: 'first', at: 1 }]);
  await ledger.record([{ ...shared, ...fact, block: 'second', at: 2 }]);
  expect((await foundEntries(ledger, [shared])).get(shared)?.block).toBe('first');
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
