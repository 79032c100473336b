import { Recent } from '../../core/bytes/recent.ts';
import { SIGNALS_MAX } from '../../core/recall/running-share.ts';
import type { Database } from './database.ts';

/** The signal of a prompt: how much the prompt has in common with the memories of its space. */
export interface NewSignal {
  readonly space: number;
  readonly signal: number;
}

/** Bound on spaces with cached signals, some 2 kB each. A service has many spaces. */
const SPACES_MAX = 1000;

/**
 * Stores the signals of the last prompts of each space, with which recall compares the signal of a new prompt. New
 * signals stay in memory until a capture is written or the file is closed, so that a recall never waits for a write. A
 * kill loses only these new signals.
 */
export class Signals {
  readonly #database: Database;
  /** Signals by the id of the space, oldest first. */
  readonly #known = new Recent<number, number[]>(SPACES_MAX);
  readonly #waiting: NewSignal[] = [];
  /** By space id, the last prompt whose signal was added. A repeated prompt adds no signal. */
  readonly #lastPrompts = new Recent<number, string>(SPACES_MAX);

  constructor(database: Database) {
    this.#database = database;
  }

  of(space: number): readonly number[] {
    return this.#in(space);
  }

  add(space: number, prompt: string, signal: number): void {
    if (this.#lastPrompts.get(space) === prompt) return;
    this.#lastPrompts.set(space, prompt);
    const signals = this.#in(space);
    signals.push(signal);
    if (signals.length > SIGNALS_MAX) signals.shift();
    this.#waiting.push({ space, signal });
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Returns the signals that are not written yet. They then count as written. */
  take(): readonly NewSignal[] {
    return this.#waiting.splice(0);
  }

  /** Writes signals. Call it in a transaction. */
  write(signals = this.take()): void {
    for (const { space, signal } of signals) {
      this.#database.run(ADD, space, signal, space);
      this.#database.run(FORGET_OLD, space, space);
    }
  }

  #in(space: number): number[] {
    const known = this.#known.get(space);
    if (known !== undefined) return known;
    const read = this.#database
      .all<{ signal: number }>('SELECT signal FROM signals WHERE space = ? ORDER BY number', space)
      .map(({ signal }) => signal);
    this.#known.set(space, read);
    return read;
  }
}

/** Returns signals to which nothing is added, for recalls that the user inspects. */
export function silent(signals: Signals): Pick<Signals, 'of' | 'add'> {
  return { of: (space) => signals.of(space), add: () => undefined };
}

const ADD = `INSERT INTO signals (space, number, signal)
  SELECT ?, coalesce(max(number), 0) + 1, ? FROM signals WHERE space = ?`;
const FORGET_OLD = `DELETE FROM signals WHERE space = ? AND number <=
  (SELECT max(number) FROM signals WHERE space = ?) - ${SIGNALS_MAX}`;
