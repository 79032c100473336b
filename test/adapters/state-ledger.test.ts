import { readFileSync, writeFileSync } from 'node:fs';
import { NO_BLOCK } from '../../src/core/recall/injections.ts';
import { expect, onTestFinished, test } from 'vitest';
import { openState, type State } from '../../src/adapters/state/state.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { RequestTable } from '../../src/adapters/state/request-log.ts';
import { stateFile } from '../../src/adapters/files/database-file.ts';
import type { LedgerEntry } from '../../src/core/ledger/entries.ts';
import { blockAddress, blockEntry, foundBlock, foundEntries } from '../support/ledger-entries.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** A state as one process has it open. */
function open(folder: string, lines: string[] = []): State {
  const state = openState({ folder, report: (line) => lines.push(line) });
  onTestFinished(() => state.close());
  return state;
}

/** Another program holds the lock for writing until it is released. */
function holdLock(folder: string): { release(): void } {
  const connection = loadDriver().open(stateFile(folder));
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

test('what one process records is found by the others at once, also where they missed it before', async () => {
  const folder = tempFolder();
  const [one, two] = [open(folder).ledger, open(folder).ledger];
  expect(await foundBlock(two, 'a')).toBeUndefined();
  await one.record([blockEntry('a', { at: 5 })]);
  expect(await foundBlock(two, 'a')).toBe('block of a');
  await one.record([blockEntry('a', { at: 6, block: 'later' })]);
  expect(await foundBlock(two, 'a')).toBe('later');
});

test('an entry that conversations share is written once, whichever process is first', async () => {
  const folder = tempFolder();
  const shared = { kind: 'shared-block', tenant: 'local', scope: 's', fingerprint: 'f' } as const;
  const fact = { form: 'text', space: 'shop' } as const;
  const [one, two] = [open(folder).ledger, open(folder).ledger];
  await one.record([{ ...shared, ...fact, block: 'first', at: 1 }]);
  await two.record([{ ...shared, ...fact, block: 'second', at: 2 }]);
  expect((await foundEntries(two, [shared])).get(shared)?.block).toBe('first');
  expect((await foundEntries(one, [shared])).get(shared)?.block).toBe('first');
});

const OWNER = { tenant: 'local', conversation: 'c1' };
const AT_ITEM = { tenant: 'local', scope: 'default', fingerprint: 'F' };
const BLOCK = { block: 'block', form: 'part', space: 'shop' } as const;
const MARKS = [
  { item: 'i1', block: 'b1' },
  { item: 'i2', block: 'b2' },
];
const BATCH = { leftOut: { before: 5, marks: ['abc', '~def'] } } as const;

const EACH_KIND: readonly LedgerEntry[] = [
  { kind: 'own-block', ...OWNER, fingerprint: 'F', ...BLOCK, at: 7 },
  { kind: 'shared-block', ...AT_ITEM, ...BLOCK, at: 7 },
  // A decision that was taken back.
  { kind: 'own-block', ...OWNER, fingerprint: 'G', ...NO_BLOCK, isOpen: true, at: 7 },
  {
    kind: 'thought',
    tenant: 'local',
    thought: 'T',
    behind: 'F',
    isShortened: true,
    isBound: true,
    blocks: MARKS,
    at: 7,
  },
  {
    kind: 'thought',
    tenant: 'local',
    thought: 'U',
    behind: 'F',
    isShortened: false,
    isBound: false,
    blocks: [],
    at: 7,
  },
  { kind: 'bound', ...OWNER, fingerprint: 'F', at: 7 },
  { kind: 'answered-block', ...AT_ITEM, answer: 'A', ...BLOCK, at: 7 },
  { kind: 'refusal', change: 'recall', ...OWNER, at: 7 },
  { kind: 'refusal-at', change: 'shortening', ...AT_ITEM, at: 7 },
  { kind: 'cut-answer', ...AT_ITEM, at: 7 },
  { kind: 'own-batch', elision: 'real', ...OWNER, fingerprint: 'F', ...BATCH, at: 7 },
  { kind: 'shared-batch', elision: 'shadow', ...AT_ITEM, ...BATCH, at: 7 },
  { kind: 'batch-mark', elision: 'real', ...AT_ITEM, at: 7 },
  { kind: 'last-request', ...OWNER, at: 7 },
  { kind: 'long-cache', ...OWNER, isLong: true, bridged: 3, isOver: false, at: 7 },
];

test.each(['an empty log', 'entries in its log'])(
  'a backup copied over the open file with %s stays whole, and gets what this process knows',
  async (log) => {
    const folder = tempFolder();
    const lines: string[] = [];
    const earlier = open(folder);
    await earlier.ledger.record([blockEntry('old')]);
    await earlier.close();
    const backup = readFileSync(stateFile(folder));
    const { ledger } = open(folder, lines);
    const names = Array.from({ length: 400 }, (_, at) => `new ${at}`);
    await ledger.record(names.map((name) => blockEntry(name)));
    const connection = loadDriver().open(stateFile(folder));
    connection.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    connection.close();
    if (log !== 'an empty log') await ledger.record([blockEntry('in the log')]);
    // A request looks up what it sends again.
    expect(await foundBlock(ledger, 'new 7')).toBe('block of new 7');
    writeFileSync(stateFile(folder), backup);
    const found = (): Promise<unknown> => foundBlock(ledger, 'new 7').catch(() => undefined);
    await expect.poll(found).toBe('block of new 7');
    await ledger.record([blockEntry('after')]);
    const all = ['old', 'new 7', 'after'];
    for (const one of [ledger, open(folder, lines).ledger]) {
      // oxlint-disable-next-line no-await-in-loop
      const blocks = await Promise.all(all.map((name) => foundBlock(one, name)));
      expect(blocks).toEqual(all.map((name) => `block of ${name}`));
    }
    expect(lines.join()).not.toContain('damaged');
  },
);

test('an entry of each kind is found as it was recorded, also by the next process', async () => {
  const folder = tempFolder();
  const first = openState({ folder, report: () => undefined });
  await first.ledger.record(EACH_KIND);
  await first.close();
  const found = await foundEntries(open(folder).ledger, EACH_KIND);
  expect(EACH_KIND.map((entry) => found.get(entry))).toEqual(EACH_KIND);
});

test('a decision that cannot be written in time is not known, and one that can be is', async () => {
  const folder = tempFolder();
  const { ledger } = open(folder);
  await ledger.record([blockEntry('old')]);
  const other = holdLock(folder);
  setTimeout(() => other.release(), 20);
  expect(await ledger.commit([blockEntry('soon')])).toBe(true);
  expect(await foundBlock(ledger, 'soon')).toBe('block of soon');
  holdLock(folder);
  expect(await ledger.commit([blockEntry('never')])).toBe(false);
  expect(await foundBlock(ledger, 'never')).toBeUndefined();
  // Reading goes on.
  expect(await foundBlock(ledger, 'old')).toBe('block of old');
});

test('an entry that waits for a lock is known to this process, and written when it can be', async () => {
  const folder = tempFolder();
  const { ledger, writer } = open(folder);
  await ledger.record([blockEntry('old')]);
  const other = holdLock(folder);
  await ledger.record([blockEntry('waiting')]);
  expect(writer.isBehind).toBe(true);
  expect(await foundBlock(ledger, 'waiting')).toBe('block of waiting');
  expect(await foundBlock(open(folder).ledger, 'waiting')).toBeUndefined();
  other.release();
  expect(await writer.caughtUp(30_000)).toBe(true);
  expect(await foundBlock(open(folder).ledger, 'waiting')).toBe('block of waiting');
});

/** Runs the work five times. The machine does other things too: the shortest of the longest pauses is svc's own. */
async function longestPauses(work: () => Promise<void>): Promise<readonly number[]> {
  const pauses: number[] = [];
  for (let times = 0; times < 5; times += 1) {
    let worst = 0;
    let last = performance.now();
    const timer = setInterval(() => {
      worst = Math.max(worst, performance.now() - last);
      last = performance.now();
    }, 1);
    // oxlint-disable-next-line no-await-in-loop
    await work();
    clearInterval(timer);
    pauses.push(worst);
  }
  return pauses;
}

test('a lock never holds up the event loop', async () => {
  const folder = tempFolder();
  const { ledger } = open(folder);
  await ledger.record([blockEntry('old')]);
  holdLock(folder);
  const pauses = await longestPauses(async () => {
    await Promise.all([ledger.commit([blockEntry('a')]), ledger.record([blockEntry('b')])]);
  });
  expect(Math.min(...pauses)).toBeLessThan(100);
});

test('among 100,000 entries a long conversation finds its 8,000, and the event loop goes on', async () => {
  const folder = tempFolder();
  const { ledger } = open(folder);
  const names = Array.from({ length: 100_000 }, (_, at) => `${at}`);
  for (let at = 0; at < names.length; at += 5000) {
    // oxlint-disable-next-line no-await-in-loop
    await ledger.record(names.slice(at, at + 5000).map((name) => blockEntry(name)));
  }
  const asked = names.slice(-8000);
  const addresses = asked.map(blockAddress);
  const pauses = await longestPauses(async () => {
    const found = await open(folder).ledger.find(addresses, 60_000);
    expect(found.missing).toBeUndefined();
    expect(asked.every((name) => found.has(blockAddress(name)))).toBe(true);
  });
  expect(Math.min(...pauses)).toBeLessThan(100);
});

test('a question that takes too long says that entries may be missing', async () => {
  const { ledger } = open(tempFolder());
  const names = Array.from({ length: 2000 }, (_, at) => `${at}`);
  expect((await ledger.find(names.map(blockAddress), 0)).missing).toBe('late');
});

test('law 7: what is forgotten while a long conversation is looked up takes nothing else from it', async () => {
  const { ledger } = open(tempFolder());
  const names = Array.from({ length: 2_000 }, (_, at) => `item ${at}`);
  const entries = names.map((name) => blockEntry(name));
  await ledger.record(entries);
  const looking = ledger.find(names.map(blockAddress), 30_000);
  ledger.forget();
  const found = await looking;
  expect(found.missing).toBeUndefined();
  expect(names.filter((name) => !found.has(blockAddress(name)))).toEqual([]);
});

test('a clock that is ahead for two days deletes no request of the log', () => {
  const state = open(tempFolder());
  const DAY_MS = 86_400_000;
  const daysLeftAfter = (days: readonly number[]): readonly number[] => {
    let left: readonly { readonly at: number }[] = [];
    state.writer.put((rows) => {
      for (const day of days) {
        rows.run("INSERT INTO requests (id, at, row) VALUES ('', ?, '{}')", day * DAY_MS);
        new RequestTable(rows).prune();
      }
      left = rows.all<{ at: number }>('SELECT at FROM requests ORDER BY number');
    });
    return left.map(({ at }) => at / DAY_MS);
  };
  const days = [1000, 1001, 1002, 1400, 1401, 1003, 1004];
  expect(daysLeftAfter(days)).toEqual(days);
  expect(daysLeftAfter([1200, 1201, 1202])).toEqual([1400, 1401, 1200, 1201, 1202]);
});
