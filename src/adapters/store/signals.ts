import { SIGNALS_MAX } from '../../core/recall/running-share.ts';
import type { Database } from './database.ts';

/**
 * Records how much the last prompts of each project shared with the memory; a new prompt is
 * compared with them. New ones wait in this process until a capture is written anyway, so that a
 * recall never waits for the disk. A kill loses the last one at most.
 */
export class Signals {
  readonly #database: Database;
  /** By the space's id: oldest first. */
  readonly #known = new Map<number, number[]>();
  readonly #waiting: { readonly space: number; readonly signal: number }[] = [];
  /** By the space's id: the prompt that was counted last. A client that asks again says nothing new. */
  readonly #lastPrompts = new Map<number, string>();

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

  /** Call in a transaction. */
  write(): void {
    for (const { space, signal } of this.#waiting.splice(0)) {
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

const ADD = `INSERT INTO signals (space, number, signal)
  SELECT ?, coalesce(max(number), 0) + 1, ? FROM signals WHERE space = ?`;
const FORGET_OLD = `DELETE FROM signals WHERE space = ? AND number <=
  (SELECT max(number) FROM signals WHERE space = ?) - ${SIGNALS_MAX}`;
