import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openState, type State } from '../../src/adapters/state/state.ts';
import { type Connection, type Driver, loadDriver } from '../../src/adapters/store/driver.ts';
import { blockEntry, foundBlocks } from '../support/ledger-entries.ts';
import { FakeMemory } from '../support/fake-memory.ts';
import { recordOf } from '../support/records.ts';
import { tempFolder } from '../support/temp-folder.ts';

/** Faults of the disk and locks of other programs, at each statement that the state executes. */

class Fault {
  /** The number of the statement from which on they fail; it is counted down. */
  left: number;
  /** How many statements fail. */
  times: number;
  readonly #code: number;
  readonly #act: () => void;

  constructor(at: number, code: number, { times = Infinity, act = () => {} } = {}) {
    this.left = at;
    this.times = times;
    this.#code = code;
    this.#act = act;
  }

  readonly driver: Driver = {
    name: 'node:sqlite',
    open: (path, options) => this.#guarded(loadDriver().open(path, options)),
  };

  #guarded(connection: Connection): Connection {
    return {
      // SQLite itself ends a transaction whose end fails.
      exec: (sql) =>
        sql === 'ROLLBACK' ? connection.exec(sql) : this.#pass(() => connection.exec(sql)),
      close: () => connection.close(),
      prepare: (sql) => {
        const statement = connection.prepare(sql);
        return {
          run: (...values) => this.#pass(() => statement.run(...values)),
          get: (...values) => this.#pass(() => statement.get(...values)),
          all: (...values) => this.#pass(() => statement.all(...values)),
        };
      },
    };
  }

  #pass<Result>(work: () => Result): Result {
    this.left -= 1;
    if (this.left > 0 || this.times === 0) return work();
    this.times -= 1;
    this.#act();
    if (this.#code === 0) return work();
    throw Object.assign(new Error('injected'), { errcode: this.#code });
  }
}

function open(folder: string, driver?: Driver): State {
  const state = openState({ folder, report: () => undefined, ...(driver && { driver }) });
  onTestFinished(() => state.close());
  return state;
}

interface Done {
  readonly committed: readonly string[];
  readonly recorded: readonly string[];
  readonly kept: readonly string[];
}

/** One process's work: what of it was acknowledged. */
async function run(state: State, memory: FakeMemory): Promise<Done & { flush(): Promise<void> }> {
  const outbox = state.outboxFor('store', memory);
  onTestFinished(() => outbox.close());
  const committed: string[] = [];
  const kept: string[] = [];
  const recorded = ['r1', 'r2'];
  for (const round of ['1', '2']) {
    /* oxlint-disable no-await-in-loop -- One after the other. */
    await state.ledger.record([blockEntry(`r${round}`)]);
    if (await state.ledger.commit([blockEntry(`c${round}`), blockEntry(`d${round}`)])) {
      committed.push(`c${round}`, `d${round}`);
    }
    if (outbox.keep([recordOf(`fact ${round}`)])) kept.push(`fact ${round}`);
    // It is found, or said to be unknown: never absent.
    const known = await state.ledger.find([blockEntry(`r${round}`)], 50);
    expect(known.has(blockEntry(`r${round}`)) || known.missing !== undefined).toBe(true);
    /* oxlint-enable no-await-in-loop */
  }
  const flush = (): Promise<void> => outbox.flush(30_000);
  return { committed, recorded, kept, flush };
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
