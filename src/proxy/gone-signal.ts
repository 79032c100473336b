import type { ServerResponse } from 'node:http';
import type { Cancellation } from '../ports/cancellation.ts';

// One object for all: an abort without a reason makes a DOMException with its stack, 20 us each.
const GONE = new Error('The client has gone.');

/** The place of an answer's signal. A WeakMap takes 1 us for each answer, most of it in garbage collection. */
const SIGNAL = Symbol('gone');

/** Aborts when the client hangs up before its answer is whole: for each answer one signal. */
export function goneSignal(outgoing: ServerResponse & { [SIGNAL]?: GoneSignal }): GoneSignal {
  return (outgoing[SIGNAL] ??= new GoneSignal(outgoing));
}

export class GoneSignal implements Cancellation {
  readonly reason = GONE;
  #aborted: boolean;
  /** Few: the wait for the body, then the provider. */
  #listeners: readonly (() => void)[] = [];

  constructor(outgoing: ServerResponse) {
    this.#aborted = outgoing.destroyed;
    if (this.#aborted) return;
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) this.#abort();
    });
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  throwIfAborted(): void {
    if (this.#aborted) throw GONE;
  }

  addEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners = [...this.#listeners, listener];
  }

  removeEventListener(_type: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((one) => one !== listener);
  }

  /** For those who join it with other signals. */
  toAbortSignal(): AbortSignal {
    const controller = new AbortController();
    if (this.#aborted) controller.abort(GONE);
    else this.addEventListener('abort', () => controller.abort(GONE));
    return controller.signal;
  }

  #abort(): void {
    this.#aborted = true;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}
