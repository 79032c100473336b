import { setTimeout as wait } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { stateFile } from '../../src/adapters/files/database-file.ts';
import { type StateOutbox, STORE_TARGET } from '../../src/adapters/state/outbox.ts';
import { openState } from '../../src/adapters/state/state.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { collectGarbage } from '../support/collect-garbage.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { recordOf } from '../support/records.ts';
import { Fault } from '../support/state-work.ts';
import { tempFolder } from '../support/temp-folder.ts';

function openOutbox(
  folder: string,
  target: FakeMemory,
  { lines = [], name = STORE_TARGET }: { lines?: string[]; name?: string } = {},
): StateOutbox {
  const state = openState({ folder, report: (line) => lines.push(line) });
  const outbox = state.outboxFor(name, target);
  onTestFinished(async () => {
    outbox.close();
    await state.close();
  });
  return outbox;
}

/** Bytes of the heap that cannot be collected. */
function heldBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test('R27: a record is on disk when keep returns, and in the memory soon after', async () => {
  const folder = tempFolder();
  const memory = new FakeMemory();
  const outbox = openOutbox(folder, memory);
  expect(outbox.keep([recordOf('one'), recordOf('two')])).toBe(true);
  expect(openOutbox(folder, memory).waiting).toBe(2);
  expect(outbox.waiting).toBe(2);
  await outbox.flush(30_000);
  expect(outbox.waiting).toBe(0);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one', 'two']);
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
    await Promise.all(Array.from({ length: 100 }, () => outbox.flush(1)));
    expect(outbox.waiting).toBe(1000);
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

test('R27: what a process left is delivered by the next one, and by any other on the folder', async () => {
  const folder = tempFolder();
  const away = new FakeMemory();
  away.failure = 'unavailable';
  const first = openOutbox(folder, away);
  first.keep([recordOf('inherited')]);
  first.close();
  const memory = new FakeMemory();
  const second = openOutbox(folder, memory);
  await second.flush(30_000);
  expect(memory.captured.map(({ text }) => text)).toEqual(['inherited']);
  expect(second.waiting).toBe(0);
});

test('records for one memory never go to another', async () => {
  const folder = tempFolder();
  const [one, other] = [new FakeMemory(), new FakeMemory()];
  one.failure = 'unavailable';
  openOutbox(folder, one).keep([recordOf('for one')]);
  const outbox = openOutbox(folder, other, { name: 'other' });
  outbox.keep([recordOf('for the other')]);
  await outbox.flush(30_000);
  expect(other.captured.map(({ text }) => text)).toEqual(['for the other']);
});

/** Opens an outbox while another connection holds the lock of its file. */
function openLocked(lines: string[] = []) {
  const folder = tempFolder();
  const memory = new FakeMemory();
  const state = openState({ folder, report: (line) => lines.push(line) });
  const outbox = state.outboxFor('store', memory);
  onTestFinished(async () => {
    outbox.close();
    await state.close();
  });
  expect(state.open()).toBe(true);
  const connection = loadDriver().open(stateFile(folder));
  connection.exec('BEGIN IMMEDIATE');
  return { memory, state, outbox, connection };
}

test('R27: a record that cannot be written now waits, and is written when it can be', async () => {
  const { memory, state, outbox, connection } = openLocked();
  expect(outbox.keep([recordOf('one')])).toBe(true);
  expect(state.writer.isBehind).toBe(true);
  expect(await state.writer.caughtUp(20)).toBe(false);
  connection.exec('ROLLBACK');
  connection.close();
  await outbox.flush(30_000);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one']);
});

test('R27: behind a lock that lasts, nothing is called stored, and it is said aloud', async () => {
  const lines: string[] = [];
  const { memory, state, outbox, connection } = openLocked(lines);
  onTestFinished(() => connection.close());
  expect(outbox.keep([recordOf('one')])).toBe(true);
  await vi.waitFor(() => expect(outbox.keep([recordOf('one')])).toBe(false), 30_000);
  expect(outbox.keep([recordOf('two')])).toBe(false);
  expect(lines).toEqual([expect.stringContaining('is locked by another program')]);
  connection.exec('ROLLBACK');
  expect(await state.writer.caughtUp(30_000)).toBe(true);
  expect(outbox.keep([recordOf('one')])).toBe(true);
  await outbox.flush(30_000);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one', 'two']);
  connection.exec('BEGIN IMMEDIATE');
  outbox.keep([recordOf('three')]);
  outbox.close();
  await state.close();
  expect(lines.at(-1)).toBe(
    'svc stops, and what it could not write to the file of its state is lost.',
  );
});

test('R27: a record for which no write may wait any more is refused, and accepted when it is offered again', async () => {
  const { memory, state, outbox, connection } = openLocked();
  for (let writes = 0; writes < 4096; writes += 1) {
    state.writer.put((rows) => void rows.run('DELETE FROM quota'));
  }
  expect(outbox.keep([recordOf('one')])).toBe(false);
  connection.exec('ROLLBACK');
  connection.close();
  expect(await state.writer.caughtUp(30_000)).toBe(true);
  expect(outbox.keep([recordOf('one')])).toBe(true);
  await outbox.flush(30_000);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one']);
});

test('R27: a record that a full disk keeps in memory is not called stored until it is written', async () => {
  const memory = new FakeMemory();
  const fault = new Fault(Infinity, 13);
  const state = openState({
    folder: tempFolder(),
    driver: fault.driver,
    report: () => undefined,
  });
  const outbox = state.outboxFor('store', memory);
  onTestFinished(async () => {
    outbox.close();
    await state.close();
  });
  expect(state.open()).toBe(true);
  fault.left = 0;
  expect(outbox.keep([recordOf('one')])).toBe(false);
  expect(outbox.keep([recordOf('one')])).toBe(false);
  expect(outbox.keep([recordOf('two')])).toBe(false);
  fault.times = 0;
  expect(await state.writer.caughtUp(30_000)).toBe(true);
  expect(outbox.keep([recordOf('one'), recordOf('two')])).toBe(true);
  await outbox.flush(30_000);
  expect(memory.captured.map(({ text }) => text)).toEqual(['one', 'two']);
});

test('a record that the memory calls invalid is given up aloud, the others arrive', async () => {
  const lines: string[] = [];
  const memory = new FakeMemory();
  const capture = memory.capture.bind(memory);
  const outbox = openOutbox(tempFolder(), memory, { lines });
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
  const outbox = openOutbox(tempFolder(), memory, { lines });
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
