/**
 * Long work in steps. The generator yields where other work may run first, and its caller decides whether to pause.
 * Nothing here waits or knows the time.
 */
export type Steps<Result> = Generator<void, Result, void>;

/** Bytes of work between two yields. Reading them takes about 3 ms. */
export const STEP_BYTES = 1 << 20;

// Fixed cost of reading one item of a conversation, as the number of bytes whose reading takes the same time.
const ITEM_BYTES = 2_048;

/** Runs all steps at once and returns the result. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Adds up the cost of reading items, and says when it is time to yield. */
export class Pace {
  #bytes = 0;

  isDue(itemBytes: number): boolean {
    this.#bytes += itemBytes + ITEM_BYTES;
    if (this.#bytes < STEP_BYTES) return false;
    this.#bytes = 0;
    return true;
  }
}
