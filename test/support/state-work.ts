import { StateRequestLog } from '../../src/adapters/state/request-log.ts';
import { emptyBlocks } from '../../src/adapters/state/ledger.ts';
import type { State } from '../../src/adapters/state/state.ts';
import { type Connection, type Driver, loadDriver } from '../../src/adapters/store/driver.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';
import type { Memory } from '../../src/ports/memory.ts';
import type { RequestRow } from '../../src/ports/request-log.ts';
import { blockEntry } from './ledger-entries.ts';
import { recordOf } from './records.ts';

/** The work of one process with its state, and a driver that does something at a statement of it. */

export class Fault {
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

export type Kept = 'committed' | 'recorded' | 'kept';

/** Writes to the ledger and the outbox, and notes what was acknowledged. */
export async function workWith(
  state: State,
  target: Pick<Memory, 'capture'>,
  note: (how: Kept, name: string) => void,
) {
  const outbox = state.outboxFor('store', target);
  for (const round of ['1', '2']) {
    /* oxlint-disable no-await-in-loop -- One after the other. */
    await state.ledger.record([blockEntry(`r${round}`)]);
    note('recorded', `r${round}`);
    if (await state.ledger.commit([blockEntry(`c${round}`), blockEntry(`d${round}`)])) {
      note('committed', `c${round}`);
      note('committed', `d${round}`);
    }
    if (outbox.keep([recordOf(`fact ${round}`)])) note('kept', `fact ${round}`);
    // It is found, or said to be unknown: never absent.
    const known = await state.ledger.find([blockEntry(`r${round}`)], 50);
    if (!known.has(blockEntry(`r${round}`)) && known.missing === undefined) {
      throw new Error(`r${round} is absent`);
    }
    /* oxlint-enable no-await-in-loop */
  }
  return outbox;
}

/** A block that quotes a memory. */
export const QUOTING = writeRecallBlock(
  [recordOf('The lighthouse keeper is called Ada.', { space: 'tide' })],
  512,
).text;

/** The other writes of a process: rows of the request log, a block that is replaced, and a forgetting. */
export async function workOn(
  state: State,
  note: (how: 'logged' | 'replaced' | 'forgotten', name: string) => void,
): Promise<void> {
  const log = new StateRequestLog(state.writer, NO_THREAD);
  for (const id of ['req_1', 'req_2']) {
    log.add({ id, at: 1 } as RequestRow);
    note('logged', id);
  }
  await state.ledger.commit([blockEntry('c1', { block: 'another' })]);
  note('replaced', 'c1');
  await state.ledger.commit([
    blockEntry('q', { block: QUOTING, quoted: [{ ref: 'm_aaaaaaaaaaaaaaaa', space: 'tide' }] }),
  ]);
  state.writer.put((rows) => void emptyBlocks(rows, () => true));
  note('forgotten', 'q');
}

/** The lists of the log are the store thread's, which these tests lack. */
const NO_THREAD = (): Promise<never> => Promise.reject(new Error('There is no store thread.'));
