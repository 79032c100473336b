import { expect, onTestFinished, test } from 'vitest';
import { rowOf } from '../../../src/adapters/state/ledger-row.ts';
import { JournalLedger, type LedgerStore } from '../../src/adapters/journals/ledger.ts';
import type { LedgerEntry } from '../../../src/core/ledger/entries.ts';
import type { LedgerRow } from '../../../src/ports/ledger.ts';
import { blockAddress, blockEntry, foundBlock } from '../../../test/support/ledger-entries.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

/** The table of several nodes: an entry that is written once stays, else the latest wins. */
class SharedTable implements LedgerStore {
  readonly rows = new Map<string, LedgerRow>();
  asked: string[] = [];
  isAway = false;
  isSilent = false;

  async findEntries(keys: readonly string[]): Promise<readonly LedgerRow[]> {
    this.asked.push(...keys);
    if (this.isAway) throw new Error('away');
    return keys.flatMap((key) => this.rows.get(key) ?? []);
  }

  async recordEntries(rows: readonly LedgerRow[]): Promise<void> {
    if (this.isAway) throw new Error('away');
    if (this.isSilent) await new Promise<void>(() => undefined);
    for (const row of rows) {
      const before = this.rows.get(row.key);
      const stays = before !== undefined && (row.isOnce === true || before.at > row.at);
      if (!stays) this.rows.set(row.key, row);
    }
  }
}

function openNode(table: SharedTable, folder = tempFolder()): JournalLedger {
  const options = { folder, store: table, isShared: true, report: () => undefined };
  const ledger = new JournalLedger(options);
  onTestFinished(() => ledger.close());
  return ledger;
}

const own = { tenant: 't', conversation: 'c', fingerprint: 'f' } as const;
/** Written once: every conversation with these words finds it. */
const shared = { kind: 'shared-block', tenant: 't', scope: 's', fingerprint: 'f' } as const;
const sharedBlock = (block: string): LedgerEntry => {
  return { ...shared, block, form: 'text', space: 's', at: 1 };
};
const ownBlock = (block: string, at: number): LedgerEntry => {
  return { kind: 'own-block', ...own, block, form: 'text', space: 's', at };
};

test('"no entry" is not believed: what another node commits is found by the next request', async () => {
  const table = new SharedTable();
  const [one, other] = [openNode(table), openNode(table)];
  expect(await foundBlock(one, 'a')).toBe(undefined);
  expect(await other.commit([blockEntry('a', { block: 'of the other' })])).toBe(true);
  expect(await foundBlock(one, 'a')).toBe('of the other');
});

test('what was committed is in the table, and an entry that came first is the one that is found', async () => {
  const table = new SharedTable();
  const [one, other] = [openNode(table), openNode(table)];
  expect(await one.commit([sharedBlock('first')])).toBe(true);
  expect(table.rows.size).toBe(1);
  expect(await other.commit([sharedBlock('second')])).toBe(true);
  const found = await Promise.all([one, other].map((node) => node.find([shared], 30_000)));
  expect(found.map((entries) => entries.get(shared)?.block)).toEqual(['first', 'first']);
});

test('an entry that may change is asked for each time, one that is written once is not', async () => {
  const table = new SharedTable();
  const [one, other] = [openNode(table), openNode(table)];
  await one.commit([ownBlock('old', 1), sharedBlock('stays')]);
  const address = { kind: 'own-block', ...own } as const;
  const find = async () => {
    table.asked = [];
    const found = await one.find([address, shared], 30_000);
    return { asked: table.asked.length, block: found.get(address)?.block };
  };
  expect(await find()).toEqual({ asked: 2, block: 'old' });
  await other.commit([ownBlock('new', 2)]);
  expect(await find()).toEqual({ asked: 1, block: 'new' });
});

test('a table that is away or silent takes no commit, and nothing of it is found afterwards', async () => {
  const table = new SharedTable();
  const node = openNode(table);
  table.isAway = true;
  expect(await node.commit([blockEntry('a')])).toBe(false);
  table.isAway = false;
  table.isSilent = true;
  const began = performance.now();
  expect(await node.commit([blockEntry('a')])).toBe(false);
  // The timer of Node may be a millisecond early.
  expect(performance.now() - began).toBeGreaterThan(248);
  table.isSilent = false;
  expect(await foundBlock(node, 'a')).toBe(undefined);
});

test('an entry is handed over once the other node finds it, and a silent table is waited for no longer than asked', async () => {
  const table = new SharedTable();
  const [one, other] = [openNode(table), openNode(table)];
  expect(one.isHandingOver).toBe(false);
  void one.record([ownBlock('first', 1)]);
  expect(one.isHandingOver).toBe(true);
  void one.record([sharedBlock('second')]);
  await one.handedOver(30_000);
  expect(one.isHandingOver).toBe(false);
  const found = await other.find([{ kind: 'own-block', ...own }, shared], 30_000);
  expect(found.get(shared)?.block).toBe('second');
  expect(found.get({ kind: 'own-block', ...own })?.block).toBe('first');

  let answer = (): void => undefined;
  table.recordEntries = () => new Promise<void>((resolve) => (answer = resolve));
  void one.record([ownBlock('late', 2)]);
  await one.handedOver(20);
  expect(one.isHandingOver).toBe(true);
  answer();
});

test('where the table has refused, nobody waits for the next try', async () => {
  const table = new SharedTable();
  const node = openNode(table);
  table.isAway = true;
  await node.record([ownBlock('a', 1)]);
  await node.handedOver(30_000);
  expect(node.isHandingOver).toBe(false);
});

test('an entry that nobody waits for is known to its own node at once, and to the others soon', async () => {
  const table = new SharedTable();
  const [one, other] = [openNode(table), openNode(table)];
  await one.record([blockEntry('a')]);
  expect(await foundBlock(one, 'a')).toBe(blockEntry('a').block);
  await expect.poll(() => foundBlock(other, 'a')).toBe(blockEntry('a').block);
});

test('a purge on another node takes what this one remembers', async () => {
  const table = new SharedTable();
  const node = openNode(table);
  await node.commit([blockEntry('a')]);
  expect(await foundBlock(node, 'a')).not.toBe(undefined);
  const before = node.generation();
  const row = rowOf(blockEntry('a'));
  table.rows.set(row.key, { ...row, block: '' });
  node.forget();
  expect(node.generation()).not.toBe(before);
  expect(await foundBlock(node, 'a')).toBe('');
});

test('law 7: what is forgotten anywhere while the table is asked takes nothing else from a request', async () => {
  const table = new SharedTable();
  const node = openNode(table);
  await node.commit([blockEntry('kept'), blockEntry('purged')]);
  const addresses = [blockAddress('kept'), blockAddress('purged')];
  const looking = node.find(addresses, 30_000);
  const row = rowOf(blockEntry('purged'));
  table.rows.set(row.key, { ...row, block: '' });
  node.forget();
  const found = await looking;
  expect([found.missing, ...addresses.map((one) => found.get(one)?.block)]).toEqual([
    undefined,
    blockEntry('kept').block,
    '',
  ]);
});

test('a table that forgets without end is late in time', async () => {
  const table = new SharedTable();
  const node = openNode(table);
  table.findEntries = async () => {
    node.forget();
    return [];
  };
  const found = await node.find([blockAddress('a')], 50);
  expect(found.missing).toBe('late');
});
