import type { Placement } from '../core/injections.ts';
import type { Reading } from './read-request.ts';

/**
 * Keeps the history of sessions that began before svc did, one exchange at a time and never while a
 * request waits for its answer to begin: whoever starts svc in the middle of a long session must
 * not pay for it in the first requests. The history stands in every later request too, but a session
 * may have had its last one, or may come back compacted: so what waits is taken in when svc ends.
 */

/**
 * An exchange takes about 2 ms of this thread and up to 10 of the store's: a tenth of one core, on
 * a machine that has only one.
 */
const PACE_MS = 100;
/** What waits at the end is 32 exchanges at most: a tenth of a second. Whoever stops svc waits for it. */
const FINISH_MS = 500;
/** One person's agents at work side by side. Each holds on to a body, so they are few. */
const CONVERSATIONS_MAX = 4;

export interface History {
  readonly reading: Reading;
  /** The recalled blocks that the request carried. */
  readonly placements: readonly Placement[];
}

interface Waiting extends History {
  readonly left: number;
}

export class HistoryPacer {
  readonly #keepOne: (history: History) => Promise<boolean>;
  /** By conversation; the oldest request is the next. */
  readonly #waiting = new Map<string, Waiting>();
  #held = 0;
  #isPlanned = false;
  #isFinishing = false;
  #keeping: Promise<void> = Promise.resolve();

  /** `keepOne` says whether it found an exchange to keep. */
  constructor(keepOne: (history: History) => Promise<boolean>) {
    this.#keepOne = keepOne;
  }

  /** At most `count` exchanges of it; takes the place of an earlier request's history. */
  add(history: History, count: number): void {
    const { conversation, space } = history.reading.place;
    const key = `${space} ${conversation}`;
    this.#waiting.delete(key);
    if (count === 0) return;
    this.#waiting.set(key, { ...history, left: count });
    for (const oldest of this.#waiting.keys()) {
      if (this.#waiting.size <= CONVERSATIONS_MAX) break;
      this.#waiting.delete(oldest);
    }
    this.#plan();
  }

  /** Nothing is kept until what this returns is called, once or more often. */
  hold(): () => void {
    this.#held += 1;
    let isHeld = true;
    return () => {
      if (isHeld) this.#held -= 1;
      isHeld = false;
    };
  }

  /** Keeps what waits, without pauses and for half a second at most: for the end of the process. */
  async finish(): Promise<void> {
    this.#isFinishing = true;
    const until = performance.now() + FINISH_MS;
    await this.#keeping;
    while (this.#waiting.size > 0 && performance.now() < until) {
      // oxlint-disable-next-line no-await-in-loop -- The store takes one after the other.
      await this.#keepNext();
    }
  }

  // The process may end in between.
  #plan(): void {
    if (this.#isPlanned || this.#isFinishing) return;
    this.#isPlanned = true;
    setTimeout(() => void this.#step(), PACE_MS).unref();
  }

  async #step(): Promise<void> {
    if (this.#held === 0 && !this.#isFinishing) {
      this.#keeping = this.#keepNext();
      await this.#keeping;
    }
    this.#isPlanned = false;
    if (this.#waiting.size > 0) this.#plan();
  }

  async #keepNext(): Promise<void> {
    const next = this.#waiting.entries().next().value;
    if (next === undefined) return;
    const [key, { left, ...history }] = next;
    this.#waiting.delete(key);
    const isOne = await this.#tryOne(history);
    // Behind the others: they take turns. A later request may have taken its place meanwhile.
    if (isOne && left > 1 && !this.#waiting.has(key)) {
      this.#waiting.set(key, { ...history, left: left - 1 });
    }
  }

  // Nobody waits here who could catch it: an error would end the process, and every answer with it.
  async #tryOne(history: History): Promise<boolean> {
    try {
      return await this.#keepOne(history);
    } catch {
      return false;
    }
  }
}
