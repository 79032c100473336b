import { forgetOldest } from '../../core/bytes/recent.ts';
import { SIGNALS_MAX } from '../../core/recall/running-share.ts';
import type { Database } from './database.ts';

/** The signal of a prompt that was compared with its space. */
export interface NewSignal {
  readonly space: number;
  readonly signal: number;
}

/** Bound on spaces with cached signals, some 2 kB each; a service has many spaces. */
const SPACES_MAX = 1000;

/**
 * Records the signals of each project's last prompts, to compare a new prompt with. New ones stay in memory until a
 * capture is written or the file is closed, so that a recall never waits for the disk. A kill loses only the last
 * ones.
 */
export class Signals {
  readonly #database: Database;
  /** Signals by the id of the space, oldest first. */
  readonly #known = new Map<number, number[]>();
  readonly #waiting: NewSignal[] = [];
  /** The last counted prompt of each space, by space id: a repeated prompt is not counted again. */
  readonly #lastPrompts = new Map<number, string>();

  constructor(database: Database) {
    this.#database = database;
  }

  of(space: number): readonly number[] {
    return this.#in(space);
  }

  add(space: number, prompt: string, signal: number): void {
    if (this.#lastPrompts.get(space) === prompt) return;
    this.#lastPrompts.delete(space);
    this.#lastPrompts.set(space, prompt);
    forgetOldest(this.#lastPrompts, SPACES_MAX);
    const signals = this.#in(space);
    signals.push(signal);
    if (signals.length > SIGNALS_MAX) signals.shift();
    this.#waiting.push({ space, signal });
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Returns the signals that are not written yet, and removes them from the list. */
  take(): readonly NewSignal[] {
    return this.#waiting.splice(0);
  }

  /** Writes signals. Must be called in a transaction. */
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
    forgetOldest(this.#known, SPACES_MAX);
    return read;
  }
}

/** Returns signals without recording, for recalls that only look or that another worker answers too. */
export function silent(signals: Signals): Pick<Signals, 'of' | 'add'> {
  return { of: (space) => signals.of(space), add: () => undefined };
}

const ADD = `INSERT INTO signals (space, number, signal)
  SELECT ?, coalesce(max(number), 0) + 1, ? FROM signals WHERE space = ?`;
const FORGET_OLD = `DELETE FROM signals WHERE space = ? AND number <=
  (SELECT max(number) FROM signals WHERE space = ?) - ${SIGNALS_MAX}`;
