import { spawnSync } from 'node:child_process';
import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { JournalLedger, type LedgerStore } from '../../src/adapters/journals/ledger.ts';
import type { LedgerEntry } from '../../src/ports/ledger.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import { foundEntries } from '../support/found-entries.ts';
import { tempFolder } from '../support/temp-folder.ts';

class MapStore implements LedgerStore {
  readonly entries = new Map<string, LedgerEntry>();
  readonly asked: (readonly string[])[] = [];
  isAway = false;

  async findEntries(keys: readonly string[]): Promise<readonly LedgerEntry[]> {
    this.asked.push(keys);
    if (this.isAway) throw new Error('away');
    return keys.flatMap((key) => this.entries.get(key) ?? []);
  }

  async recordEntries(entries: readonly LedgerEntry[]): Promise<void> {
    if (this.isAway) throw new Error('away');
    for (const entry of entries) this.entries.set(entry.key, entry);
  }
}

function entryOf(key: string, other: Partial<LedgerEntry> = {}): LedgerEntry {
  return { key, block: `block of ${key}`, form: 'text', dropsEarlier: false, at: 1, ...other };
}

function openLedger(folder: string, store: LedgerStore): JournalLedger {
  const ledger = new JournalLedger({ folder, store, report: () => undefined });
  onTestFinished(() => ledger.close());
  return ledger;
}

test('an entry is found right after it was recorded, without asking the table', async () => {
  const store = new MapStore();
  const ledger = openLedger(tempFolder(), store);
  ledger.record([entryOf('a'), entryOf('b', { block: '', form: 'part', dropsEarlier: true })]);
  const found = await foundEntries(ledger, ['a', 'b']);
  expect([...found.values()]).toEqual([
    entryOf('a'),
    entryOf('b', { block: '', form: 'part', dropsEarlier: true }),
  ]);
  expect(store.asked).toEqual([]);
});

test('unknown keys are asked for once, in one batch, and what is absent is remembered', async () => {
  const store = new MapStore();
  store.entries.set('old', entryOf('old'));
  const ledger = openLedger(tempFolder(), store);
  expect((await foundEntries(ledger, ['old', 'none', 'neither'])).size).toBe(1);
  expect((await foundEntries(ledger, ['old', 'none', 'neither'])).size).toBe(1);
  expect(store.asked).toEqual([['old', 'none', 'neither']]);
  ledger.record([entryOf('none')]);
  expect((await foundEntries(ledger, ['none'])).size).toBe(1);
});

test('a table that cannot be read leaves the ledger unknown, and is asked again', async () => {
  const store = new MapStore();
  store.entries.set('old', entryOf('old'));
  store.isAway = true;
  const ledger = openLedger(tempFolder(), store);
  expect(await ledger.find(['old'], 10_000)).toBe('unavailable');
  store.isAway = false;
  expect((await foundEntries(ledger, ['old'])).size).toBe(1);
});

test('the entries of a killed process are there for the first request of the next one', async () => {
  const folder = tempFolder();
  const store = new MapStore();
  store.isAway = true;
  const first = openLedger(folder, store);
  first.record([entryOf('a')]);
  await first.close();
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  const [file = ''] = readdirSync(folder);
  renameSync(join(folder, file), join(folder, file.replace(`-${process.pid}-`, `-${pid}-`)));

  store.isAway = false;
  const second = openLedger(folder, store);
  expect((await foundEntries(second, ['a'])).get('a')).toEqual(entryOf('a'));
  await second.close();
  expect(store.entries.get('a')).toEqual(entryOf('a'));
  expect(readdirSync(folder)).toEqual([]);
});

test('two processes on one folder see the entries of each other', async () => {
  const folder = tempFolder();
  const open = () => openEmbeddedStore({ folder, report: () => undefined });
  const [one, two] = [open(), open()];
  one.ledger.record([entryOf('a', { at: 5 })]);
  await one.close();
  expect((await foundEntries(two.ledger, ['a'])).get('a')).toEqual(entryOf('a', { at: 5 }));
  await two.close();
});

test('of two entries for one key the later one stays, in whatever order they arrive', async () => {
  const folder = tempFolder();
  const store = openEmbeddedStore({ folder, report: () => undefined });
  store.ledger.record([entryOf('a', { at: 9, block: 'new' })]);
  store.ledger.record([entryOf('b', { at: 1 })]);
  await store.close();
  const again = openEmbeddedStore({ folder, report: () => undefined });
  again.ledger.record([entryOf('c', { at: 9 })]);
  expect((await foundEntries(again.ledger, ['a'])).get('a')?.block).toBe('new');
  await again.close();
});

test('law 4: a table that does not answer makes the ledger unknown, not empty, and in time', async () => {
  const store = new MapStore();
  const ledger = openLedger(tempFolder(), store);
  store.findEntries = () => new Promise(() => {});
  expect(await ledger.find(['a'], 20)).toBe('late');
  store.findEntries = () => Promise.reject(new Error('gone'));
  expect(await ledger.find(['b'], 10_000)).toBe('unavailable');
});
