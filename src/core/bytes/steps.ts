/**
 * Long work in steps. A generator yields where other work may go first; its runner decides whether
 * to pause. Nothing here waits or knows the time.
 */
export type Steps<Result> = Generator<void, Result, void>;

/** Bytes that are read in about 3 ms. */
export const STEP_BYTES = 1 << 20;

// To read an item costs as much as this many bytes, however short it is: 12 us where nothing is warm.
const ITEM_BYTES = 2_048;

/** Does all steps at once. */
export function finish<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** Says when many short items have taken as long as a step may. */
export class Pace {
  #bytes = 0;

  isDue(itemBytes: number): boolean {
    this.#bytes += itemBytes + ITEM_BYTES;
    if (this.#bytes < STEP_BYTES) return false;
    this.#bytes = 0;
    return true;
  }
}
