import { ProxyError } from '../core/errors.ts';

/**
 * Bounds the bytes of all bodies that a process holds at once. A body that does not fit waits in a
 * short line, and is refused when the line is full or the wait takes too long. It never holds a part
 * of what it asks for while it waits, so that two waits cannot block each other.
 */
export class ByteBudget {
  readonly #waitMs: number;
  readonly #waitingMax: number;
  /** The oldest first. */
  readonly #waiting: Waiting[] = [];
  #free: number;

  constructor({ bytesMax, waitMs, waitingMax }: BudgetLimits) {
    this.#free = bytesMax;
    this.#waitMs = waitMs;
    this.#waitingMax = waitingMax;
  }

  /**
   * Throws ProxyError TOO_BUSY when there is no room in time, and the reason of `signal` when the
   * client hangs up first. Small requests overtake large ones that wait.
   */
  take(bytes: number, signal: AbortSignal): Promise<Lease> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (bytes <= this.#free) resolve(this.#lease(bytes));
      else if (this.#waiting.length >= this.#waitingMax) throw tooBusy();
      else this.#wait({ bytes, signal, resolve, reject });
    });
  }

  #lease(bytes: number): Lease {
    this.#free -= bytes;
    return new Lease(bytes, {
      takeMore: (more) => {
        if (more > this.#free) throw tooBusy();
        this.#free -= more;
      },
      giveBack: (less) => this.#giveBack(less),
    });
  }

  #wait({ bytes, signal, resolve, reject }: Asked): void {
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
      resolve(this.#lease(bytes));
    };
    const waiting = { bytes, admit };
    signal.addEventListener('abort', onGone, { once: true });
    this.#waiting.push(waiting);
  }

  #giveBack(bytes: number): void {
    this.#free += bytes;
    for (;;) {
      const next = this.#waiting.find((waiting) => waiting.bytes <= this.#free);
      if (next === undefined) return;
      next.admit();
    }
  }
}

export interface BudgetLimits {
  readonly bytesMax: number;
  /** Milliseconds that a body may wait for room. */
  readonly waitMs: number;
  readonly waitingMax: number;
}

interface Waiting {
  readonly bytes: number;
  readonly admit: () => void;
}

interface Asked {
  readonly bytes: number;
  readonly signal: AbortSignal;
  readonly resolve: (lease: Lease) => void;
  readonly reject: (reason: unknown) => void;
}

interface Account {
  readonly takeMore: (bytes: number) => void;
  readonly giveBack: (bytes: number) => void;
}

/** Bytes that one body holds of the budget, until it is released. */
export class Lease {
  readonly #account: Account;
  #bytes: number;

  constructor(bytes: number, account: Account) {
    this.#bytes = bytes;
    this.#account = account;
  }

  /** Holds exactly so many bytes from now on. Throws ProxyError TOO_BUSY, and holds what it held. */
  resize(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more > 0) this.#account.takeMore(more);
    this.#bytes = bytes;
    if (more < 0) this.#account.giveBack(-more);
  }

  release(): void {
    this.resize(0);
  }
}

function tooBusy(): ProxyError {
  return new ProxyError('TOO_BUSY', 'Too many large requests are under way.');
}
