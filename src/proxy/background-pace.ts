/**
 * Decides when background work runs: one piece after the other, in the time that requests leave over.
 *
 * On a person's machine each queue has a pace of its own. In a service one pace serves the queues of
 * all keys, which take their pieces by turns: the pieces together take a share of the time at most,
 * however many keys have work.
 */

/** Work that waits for its time. */
export interface PacedQueue {
  readonly isEmpty: boolean;
  /** Begins a piece; undefined where none may run now. Never rejects. */
  begin(): Promise<void> | undefined;
}

export interface PaceOptions {
  /** Milliseconds before each piece. */
  readonly paceMs: number;
  /** The pieces, with their waits, take no larger part of the time. */
  readonly share?: number;
}

/** Thousands of queues may wait for their keys at once: a look at all of them would be work itself. */
const LOOKS_MAX = 64;

export class BackgroundPace {
  readonly #paceMs: number;
  /** Milliseconds of rest for each millisecond of work. */
  readonly #restRatio: number;
  /** The one that was looked at longest ago is the first. It holds work, and nothing of a conversation. */
  readonly #queues = new Set<PacedQueue>();
  #isPlanned = false;

  constructor({ paceMs, share = 1 }: PaceOptions) {
    this.#paceMs = paceMs;
    this.#restRatio = 1 / share - 1;
  }

  /** The queue has work. */
  wants(queue: PacedQueue): void {
    this.#queues.add(queue);
    this.#plan(this.#paceMs);
  }

  // The process may end in between.
  #plan(ms: number): void {
    if (this.#isPlanned) return;
    this.#isPlanned = true;
    setTimeout(() => void this.#step(), ms).unref();
  }

  async #step(): Promise<void> {
    const began = performance.now();
    await this.#beginOne();
    this.#isPlanned = false;
    const tookMs = performance.now() - began;
    if (this.#queues.size > 0) this.#plan(Math.max(this.#paceMs, tookMs * this.#restRatio));
  }

  #beginOne(): Promise<void> | undefined {
    let looks = Math.min(this.#queues.size, LOOKS_MAX);
    for (const queue of this.#queues) {
      if (looks === 0) break;
      looks -= 1;
      this.#queues.delete(queue);
      if (queue.isEmpty) continue;
      this.#queues.add(queue);
      const begun = queue.begin();
      if (begun !== undefined) return begun;
    }
    return undefined;
  }
}
