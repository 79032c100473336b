/**
 * Runs long work in steps. A generator yields where other work may run first; its runner decides whether to pause.
 * Nothing here waits or knows the time.
 */
export type Steps<Result> = Generator<void, Result, void>;

/** Bytes that are read in about 3 ms. */
export const STEP_BYTES = 1 << 20;

// Least cost of reading an item, in bytes of text: 12 us with cold caches, however short the item is.
const ITEM_BYTES = 2_048;

/** Runs all steps at once and returns the result. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Counts the cost of items, so that many short ones yield as often as a long one. */
export class Pace {
  #bytes = 0;

  isDue(itemBytes: number): boolean {
    this.#bytes += itemBytes + ITEM_BYTES;
    if (this.#bytes < STEP_BYTES) return false;
    this.#bytes = 0;
    return true;
  }
}
