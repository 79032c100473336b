import { ProxyError } from '../core/errors.ts';

/**
 * Bounds the bytes of all bodies that a process holds. A body that does not fit waits in a short queue, and is refused
 * if the queue is full or the wait takes too long. A waiting body takes nothing from the budget, so two waiting bodies
 * cannot block each other.
 *
 * With several owners, an owner's first body may take the whole budget. Its further bodies must leave part of the budget
 * free. So a caller that announces many bodies and does not send them cannot block all others.
 */
export class ByteBudget {
  readonly #waitMs: number;
  readonly #waitingMax: number;
  /** Waiting bodies, oldest first. */
  readonly #waiting: Waiting[] = [];
  /** The number of bodies that each owner holds. */
  readonly #held = new Map<string, number>();
  #bytesMax: number;
  #free: number;

  constructor({ bytesMax, waitMs, waitingMax }: BudgetLimits) {
    this.#bytesMax = bytesMax;
    this.#free = bytesMax;
    this.#waitMs = waitMs;
    this.#waitingMax = waitingMax;
  }

  /**
   * Takes bytes from the budget. Rejects with ProxyError TOO_BUSY if they do not become free in time, and with the
   * reason of `signal` if it aborts first. A small body does not wait behind a large one. `owner`: undefined if the
   * budget has a single owner.
   */
  take(bytes: number, signal: AbortSignal, owner?: string): Promise<Lease> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (this.#fits(bytes, owner, 0)) resolve(this.#lease(bytes, owner));
      else if (this.#waiting.length >= this.#waitingMax) throw tooBusy();
      else this.#wait({ bytes, signal, owner, resolve, reject });
    });
  }

  /** Changes the bound. Bodies that are held stay, even if they exceed the new bound. */
  resize(bytesMax: number): void {
    const more = bytesMax - this.#bytesMax;
    this.#bytesMax = bytesMax;
    this.#giveBack(more);
  }

  /**
   * Says whether the bytes fit. `alone`: the number of counted bodies at which this one is the owner's only body: 0
   * before it is counted, and 1 afterwards.
   */
  #fits(bytes: number, owner: string | undefined, alone: number): boolean {
    const isAlone = owner === undefined || (this.#held.get(owner) ?? 0) === alone;
    return bytes <= (isAlone ? this.#free : this.#free - this.#bytesMax * RESERVED_SHARE);
  }

  #lease(bytes: number, owner: string | undefined): Lease {
    this.#free -= bytes;
    this.#count(owner, 1);
    let held = bytes;
    let isReleased = false;
    const resize = (next: number): void => {
      const more = next - held;
      if (more > 0) {
        if (!this.#fits(more, owner, 1)) throw tooBusy();
        this.#free -= more;
      }
      held = next;
      if (more < 0) this.#giveBack(-more);
    };
    const release = (): void => {
      if (!isReleased) this.#count(owner, -1);
      isReleased = true;
      resize(0);
    };
    return { resize, release };
  }

  #count(owner: string | undefined, more: 1 | -1): void {
    if (owner === undefined) return;
    const held = (this.#held.get(owner) ?? 0) + more;
    if (held > 0) this.#held.set(owner, held);
    else this.#held.delete(owner);
  }

  #wait({ bytes, signal, owner, resolve, reject }: Asked): void {
    const leave = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', onGone);
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
    };
    const onGone = (): void => {
      leave();
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      leave();
      reject(tooBusy());
    }, this.#waitMs);
    const admit = (): void => {
      leave();
      resolve(this.#lease(bytes, owner));
    };
    const waiting = { bytes, owner, admit };
    signal.addEventListener('abort', onGone, { once: true });
    this.#waiting.push(waiting);
  }

  #giveBack(bytes: number): void {
    this.#free += bytes;
    for (;;) {
      const next = this.#waiting.find(({ bytes: asked, owner }) => this.#fits(asked, owner, 0));
      if (next === undefined) return;
      next.admit();
    }
  }
}

/** Share of the budget that all but an owner's first body leave free: enough for the body of nearly every request. */
const RESERVED_SHARE = 1 / 4;

export interface BudgetLimits {
  readonly bytesMax: number;
  /** Milliseconds that a body may wait until its bytes are free. */
  readonly waitMs: number;
  readonly waitingMax: number;
}

interface Waiting extends Pick<Asked, 'bytes' | 'owner'> {
  readonly admit: () => void;
}

interface Asked {
  readonly bytes: number;
  readonly owner: string | undefined;
  readonly signal: AbortSignal;
  readonly resolve: (lease: Lease) => void;
  readonly reject: (reason: unknown) => void;
}

/** The bytes that one body takes from the budget, until it is released. */
export interface Lease {
  /** Changes the number of bytes. If more do not fit, throws ProxyError TOO_BUSY and keeps the earlier number. */
  readonly resize: (bytes: number) => void;
  readonly release: () => void;
}

function tooBusy(): ProxyError {
  return new ProxyError('TOO_BUSY', 'Too many large requests are in progress.');
}
