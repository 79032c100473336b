import type { StoreRequest } from './protocol.ts';

/**
 * Urgent calls in a row before another call is answered. A busy proxy makes two or three urgent calls per request.
 * Without this bound captures would wait in the outbox until the proxy is idle.
 */
const URGENT_IN_A_ROW = 16;

/** The waiting calls of a store's thread. Urgent ones come first, up to URGENT_IN_A_ROW; each kind keeps its order. */
export class CallQueue {
  readonly #isUrgent: ReadonlySet<string>;
  readonly #urgent: StoreRequest[] = [];
  readonly #others: StoreRequest[] = [];
  #inRow = 0;

  /** `urgent`: the names of the urgent calls. */
  constructor(urgent: ReadonlySet<string>) {
    this.#isUrgent = urgent;
  }

  add(request: StoreRequest): void {
    (this.#isUrgent.has(request.name) ? this.#urgent : this.#others).push(request);
  }

  /**
   * Puts a call that met a lock back, in front of the other calls that are not urgent. Only repeatable writes
   * (REPEATABLE in store.ts) are put back, and none of them is urgent.
   */
  putBack(request: StoreRequest): void {
    this.#others.unshift(request);
  }

  next(): StoreRequest | undefined {
    const [other] = this.#others;
    // 'close' must wait for all earlier calls, because no call is answered after it.
    const isOver = other !== undefined && other.name !== 'close' && this.#inRow >= URGENT_IN_A_ROW;
    const urgent = isOver ? undefined : this.#urgent.shift();
    this.#inRow = urgent === undefined ? 0 : this.#inRow + 1;
    return urgent ?? this.#others.shift();
  }
}
