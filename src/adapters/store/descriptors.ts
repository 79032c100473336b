import { type BigIntStats, closeSync, fstatSync, openSync, statSync } from 'node:fs';

/**
 * Keeps one descriptor for each database file, for all threads of the process. By POSIX a process loses all its locks
 * on a file when it closes any descriptor of the file, also the locks of SQLite's connections in other threads. Another
 * process could then take itself for the last user, and delete the log of a database in use. So these descriptors are
 * closed only when no store of the process is open, or when their file is deleted.
 */

/** Bound on files. A process of svc has two, `memory.db` and `state.db`; a test process has many. */
const SLOTS = 256;
const FREE = -1;

export class Descriptors {
  readonly #slots: Int32Array<SharedArrayBuffer>;
  #users = 0;

  /** `slots`: the slots of the main thread; undefined in the main thread. */
  constructor(slots?: Int32Array<SharedArrayBuffer>) {
    this.#slots = slots ?? new Int32Array(new SharedArrayBuffer(SLOTS * 4)).fill(FREE);
  }

  /** The slots, which the main thread gives to its workers. */
  get slots(): Int32Array<SharedArrayBuffer> {
    return this.#slots;
  }

  /** The number of stores and states that may have files open. */
  get users(): number {
    return this.#users;
  }

  /** Returns a descriptor for reading, which must not be closed. Throws errors of the file system. */
  open(path: string): number {
    const wanted = statSync(path, { bigint: true });
    for (const [slot, descriptor] of this.#slots.entries()) {
      const stat = descriptor === FREE ? undefined : statOf(descriptor);
      if (stat !== undefined && isSame(stat, wanted)) return descriptor;
      // Close the descriptor of a deleted file, which uses disk space as long as it is open.
      if (stat?.nlink === 0n) this.#close(slot);
    }
    const descriptor = openSync(path, 'r');
    for (const slot of this.#slots.keys()) {
      if (Atomics.compareExchange(this.#slots, slot, FREE, descriptor) === FREE) return descriptor;
    }
    closeSync(descriptor);
    throw new Error('too many database files are open');
  }

  /**
   * Counts a store or a state whose threads may have files open. Returns a function that ends this; a second call of it
   * does nothing. When the last user has ended, all descriptors are closed.
   */
  addUser(): () => void {
    this.#users += 1;
    let isUser = true;
    return () => {
      if (!isUser) return;
      isUser = false;
      this.#users -= 1;
      if (this.#users > 0) return;
      for (const slot of this.#slots.keys()) this.#close(slot);
    };
  }

  #close(slot: number): void {
    const descriptor = Atomics.exchange(this.#slots, slot, FREE);
    if (descriptor !== FREE) closeSync(descriptor);
  }
}

/** Returns the state of an open file; undefined if another thread has closed the descriptor meanwhile. */
function statOf(descriptor: number): BigIntStats | undefined {
  try {
    return fstatSync(descriptor, { bigint: true });
  } catch {
    return undefined;
  }
}

function isSame(one: BigIntStats, other: BigIntStats): boolean {
  return one.ino === other.ino && one.dev === other.dev;
}

/** The descriptors of this process. A worker gets its slots from the main thread. */
export const DESCRIPTORS = new Descriptors();
