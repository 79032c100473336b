import { spawnSync } from 'node:child_process';
import { readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { JournalOutbox } from '../../src/adapters/journals/outbox.ts';
import { collectGarbage } from '../../../test/support/collect-garbage.ts';
import { FakeMemory } from '../../../test/support/fake-memory.ts';
import { recordOf } from '../../../test/support/records.ts';
import { tempFolder } from '../../../test/support/temp-folder.ts';

function openOutbox(folder: string, target: FakeMemory, lines: string[] = []): JournalOutbox {
  const outbox = new JournalOutbox({ folder, target, report: (line) => lines.push(line) });
  onTestFinished(() => outbox.close());
  return outbox;
}

function journals(folder: string): string[] {
  return readdirSync(folder).filter((file) => file.startsWith('outbox-'));
}

function bytesOnDisk(folder: string): number {
  return journals(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
}

/** Bytes of the heap that cannot be collected. */
function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test('R27: a record is on disk when keep returns, in the memory soon after, then off the disk', async () => {
  const folder = tempFolder();
  const memory = new FakeMemory();
  const outbox = openOutbox(folder, memory);
  expect(outbox.keep([recordOf('one'), recordOf('two')])).toBe(true);
  expect(bytesOnDisk(folder)).toBeGreaterThan(0);
  expect(outbox.waiting).toBe(2);
  await outbox.flush(30_000);
  expect(outbox.waiting).toBe(0);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one', 'two']);
  expect(bytesOnDisk(folder)).toBe(0);
});

test('a record that the memory holds is not sent again', async () => {
  const memory = new FakeMemory();
  const outbox = openOutbox(tempFolder(), memory);
  outbox.keep([recordOf('one')]);
  expect(outbox.keep([recordOf('one')])).toBe(true);
  await outbox.flush(30_000);
  expect(outbox.keep([recordOf('one')])).toBe(true);
  await outbox.flush(30_000);
  expect(memory.captured).toHaveLength(1);
});

test('while the memory is away, requests that gave up waiting for it hold nothing', async () => {
  const memory = new FakeMemory();
  memory.failure = 'unavailable';
  const outbox = openOutbox(tempFolder(), memory);
  outbox.keep(Array.from({ length: 1000 }, (_, at) => recordOf(`record ${at}`)));
  const before = heldBytes();
  for (let rounds = 0; rounds < 20; rounds += 1) {
    // oxlint-disable-next-line no-await-in-loop
    const stored = await Promise.all(Array.from({ length: 100 }, () => outbox.stored(1)));
    expect(stored).not.toContain(true);
  }
  expect(heldBytes() - before).toBeLessThan(20 << 20);
});

test('while the memory is away records wait, and arrive when it is back', async () => {
  const memory = new FakeMemory();
  memory.failure = 'unavailable';
  const outbox = openOutbox(tempFolder(), memory);
  outbox.keep([recordOf('one')]);
  await outbox.flush(50);
  outbox.keep([recordOf('two')]);
  expect(outbox.waiting).toBe(2);
  memory.failure = undefined;
  await outbox.flush(30_000);
  expect((await memory.list({ limit: 9 }, AbortSignal.timeout(30_000))).length).toBe(2);
});

test('R27: a dead process is inherited from, a living one is not', async () => {
  const folder = tempFolder();
  const away = new FakeMemory();
  away.failure = 'unavailable';
  const first = openOutbox(folder, away);
  first.keep([recordOf('inherited')]);
  first.close();
  const memory = new FakeMemory();
  const second = openOutbox(folder, memory);
  await second.flush(30_000);
  expect(memory.captured).toEqual([]);

  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  const [file = ''] = journals(folder);
  renameSync(join(folder, file), join(folder, file.replace(`-${process.pid}-`, `-${pid}-`)));
  const third = openOutbox(folder, memory);
  await third.flush(30_000);
  expect(memory.captured.map(({ text }) => text)).toEqual(['inherited']);
  expect(journals(folder)).toEqual([]);
});

test('a record that the memory calls invalid is given up aloud, the others arrive', async () => {
  const lines: string[] = [];
  const memory = new FakeMemory();
  const capture = memory.capture.bind(memory);
  const outbox = openOutbox(tempFolder(), memory, lines);
  vi.spyOn(memory, 'capture').mockImplementation((records, signal) => {
    memory.failure = records.some(({ text }) => text === 'bad') ? 'invalid' : undefined;
    return capture(records, signal);
  });
  outbox.keep(['one', 'bad', 'two'].map((text) => recordOf(text)));
  await outbox.flush(30_000);
  expect(outbox.waiting).toBe(0);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one', 'two']);
  expect(lines).toEqual(['The memory refused a record.']);
});

test('R27: over its bound nothing is kept, it says so once, and the rest is unharmed', async () => {
  const lines: string[] = [];
  const memory = new FakeMemory();
  memory.failure = 'unavailable';
  const outbox = openOutbox(tempFolder(), memory, lines);
  const large = (number: number): ReturnType<typeof recordOf> =>
    recordOf(`${number} ${'x'.repeat(16 * 1024 * 1024)}`);
  expect([1, 2, 3, 4, 5].map((number) => outbox.keep([large(number)]))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
  expect(lines).toHaveLength(1);
  expect(outbox.keep([recordOf('small')])).toBe(true);
});

test('an outbox whose memory never answers holds up nobody longer than asked', async () => {
  const memory = new FakeMemory();
  memory.delayMs = 60_000;
  const outbox = openOutbox(tempFolder(), memory);
  outbox.keep([recordOf('one')]);
  await outbox.flush(20);
  await wait(1);
  expect(outbox.waiting).toBe(1);
});
