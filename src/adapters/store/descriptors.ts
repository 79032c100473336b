import { type BigIntStats, closeSync, fstatSync, openSync, statSync } from 'node:fs';

/**
 * Descriptors of database files, one a file for all threads of the process. POSIX takes back every
 * lock that a process has on a file as soon as the process closes any descriptor of it. Those are the
 * locks of SQLite's connections in other threads too. Another process would then take itself for
 * the last one, and delete the log of a database that is in use. So no thread closes one of these:
 * the process does, once no store is open.
 */

/** A store needs one, for the header of its database. A process of svc has one store, a test many. */
const SLOTS = 256;
const FREE = -1;

export class Descriptors {
  readonly #slots: Int32Array<SharedArrayBuffer>;
  #users = 0;

  /** `slots`: those of another thread. */
  constructor(slots?: Int32Array<SharedArrayBuffer>) {
    this.#slots = slots ?? new Int32Array(new SharedArrayBuffer(SLOTS * 4)).fill(FREE);
  }

  /** To be handed to another thread. */
  get slots(): Int32Array<SharedArrayBuffer> {
    return this.#slots;
  }

  /** For reading; not to be closed. Throws what the file system throws. */
  open(path: string): number {
    const wanted = statSync(path, { bigint: true });
    for (const [slot, descriptor] of this.#slots.entries()) {
      const stat = descriptor === FREE ? undefined : statOf(descriptor);
      if (stat !== undefined && isSame(stat, wanted)) return descriptor;
      // A deleted file keeps its place on the disk as long as a process has it open.
      if (stat?.nlink === 0n) this.#close(slot);
    }
    const descriptor = openSync(path, 'r');
    for (const slot of this.#slots.keys()) {
      if (Atomics.compareExchange(this.#slots, slot, FREE, descriptor) === FREE) return descriptor;
    }
    closeSync(descriptor);
    throw new Error('too many database files are open');
  }

  /** While there is a user, threads may have files open. */
  addUser(): void {
    this.#users += 1;
  }

  /** Removes a user. With the last one all files are closed. */
  removeUser(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    for (const slot of this.#slots.keys()) this.#close(slot);
  }

  #close(slot: number): void {
    const descriptor = Atomics.exchange(this.#slots, slot, FREE);
    if (descriptor !== FREE) closeSync(descriptor);
  }
}

/** Undefined where another thread has closed it meanwhile. */
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
