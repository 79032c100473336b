import type { StoreRequest } from './protocol.ts';

/**
 * Limit of urgent calls in a row before another call gets its turn. A busy proxy makes two or three
 * urgent calls in each request. Without a limit its captures would wait until it is idle, and fill
 * the journal.
 */
const URGENT_IN_A_ROW = 16;

/** The calls that wait for a store's thread: urgent ones first, each kind in its order. */
export class CallQueue {
  readonly #isUrgent: ReadonlySet<string>;
  readonly #urgent: StoreRequest[] = [];
  readonly #others: StoreRequest[] = [];
  #inRow = 0;

  /** `urgent`: names of calls. */
  constructor(urgent: ReadonlySet<string>) {
    this.#isUrgent = urgent;
  }

  add(request: StoreRequest): void {
    (this.#isUrgent.has(request.name) ? this.#urgent : this.#others).push(request);
  }

  next(): StoreRequest | undefined {
    const [other] = this.#others;
    // After `close` nothing is answered: it waits for all that was asked before it.
    const isOver = other !== undefined && other.name !== 'close' && this.#inRow >= URGENT_IN_A_ROW;
    const urgent = isOver ? undefined : this.#urgent.shift();
    this.#inRow = urgent === undefined ? 0 : this.#inRow + 1;
    return urgent ?? this.#others.shift();
  }
}
