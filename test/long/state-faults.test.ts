import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openState, type State } from '../../src/adapters/state/state.ts';
import type { Driver } from '../../src/adapters/store/driver.ts';
import { blockEntry, foundBlocks } from '../support/ledger-entries.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { Fault, type Kept, workWith } from '../support/state-work.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Faults of the disk and locks of other programs, at each statement that the state executes. */

function open(folder: string, driver?: Driver): State {
  const state = openState({ folder, report: () => undefined, ...(driver && { driver }) });
  onTestFinished(() => state.close());
  return state;
}

type Done = Readonly<Record<Kept, readonly string[]>>;

/** One process's work: what of it was acknowledged. */
async function run(state: State, memory: FakeMemory): Promise<Done & { flush(): Promise<void> }> {
  const done: Record<Kept, string[]> = { committed: [], recorded: [], kept: [] };
  const outbox = await workWith(state, memory, (how, name) => done[how].push(name));
  onTestFinished(() => outbox.close());
  return { ...done, flush: () => outbox.flush(30_000) };
}

/** Statements of the work when nothing fails. */
async function countStatements(): Promise<number> {
  const count = new Fault(1_000_000, 0);
  const state = open(tempFolder(), count.driver);
  await (await run(state, new FakeMemory())).flush();
  return 1_000_000 - count.left;
}

async function checkAll(folder: string, memory: FakeMemory, done: Done): Promise<void> {
  expect(memory.captured.map(({ text }) => text)).toEqual(expect.arrayContaining([...done.kept]));
  const names = [...done.committed, ...done.recorded];
  const blocks = await foundBlocks(open(folder).ledger, names);
  expect(blocks).toEqual(names.map((name) => `block of ${name}`));
}

const CODES = { BUSY: 5, READONLY: 8, IOERR: 10, FULL: 13, CANTOPEN: 14, PROTOCOL: 15 };

test.each(Object.entries(CODES))(
  'R34: %s at any statement takes nothing that was acknowledged, once and for a while',
  async (_, code) => {
    const statements = await countStatements();
    const cases = Array.from({ length: statements }, (_one, at) => at + 1).flatMap((at) =>
      [1, Infinity].map((times) => ({ at, times })),
    );
    await Promise.all(
      cases.map(async ({ at, times }) => {
        const folder = tempFolder();
        const fault = new Fault(at, code, { times });
        const state = open(folder, fault.driver);
        const memory = new FakeMemory();
        const done = await run(state, memory);
        fault.times = 0;
        expect(await state.writer.caughtUp(30_000)).toBe(true);
        await done.flush();
        await checkAll(folder, memory, done);
      }),
    );
  },
  120_000,
);

test('R27: a folder that is deleted at any statement takes nothing that waits', async () => {
  const statements = await countStatements();
  await Promise.all(
    Array.from({ length: statements }, async (_, at) => {
      const folder = join(tempFolder(), 'data');
      const act = (): void => rmSync(folder, { recursive: true, force: true });
      const fault = new Fault(at + 1, 0, { times: 1, act });
      const state = open(folder, fault.driver);
      const memory = new FakeMemory();
      const done = await run(state, memory);
      expect(await state.writer.caughtUp(30_000)).toBe(true);
      await done.flush();
      expect(memory.captured.map(({ text }) => text)).toEqual(
        expect.arrayContaining([...done.kept]),
      );
      fault.times = 0;
      expect(await state.ledger.commit([blockEntry('after')])).toBe(true);
      expect(existsSync(join(folder, 'state.db'))).toBe(true);
      expect(await foundBlocks(open(folder).ledger, ['after'])).toEqual(['block of after']);
    }),
  );
}, 120_000);

test('R34: a damaged file is kept under another name, and the work continues in a new one', async () => {
  const statements = await countStatements();
  await Promise.all(
    Array.from({ length: statements }, async (_, at) => {
      const folder = tempFolder();
      const fault = new Fault(at + 1, 11, { times: 1 });
      const state = open(folder, fault.driver);
      const memory = new FakeMemory();
      const done = await run(state, memory);
      expect(await state.writer.caughtUp(30_000)).toBe(true);
      await done.flush();
      await checkAll(folder, memory, done);
    }),
  );
}, 120_000);
