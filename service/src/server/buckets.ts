import { Recent } from '../../../src/core/bytes/recent.ts';
import { addressBlock, BUCKETS_MAX, type Rate, takeTurn } from '../core/rates.ts';

/** Limits rates in this process, without the limiter. */

export class Buckets {
  readonly #rate: Rate;
  readonly #due = new Recent<string, number>(BUCKETS_MAX);

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Counts one call if it may pass. Returns the milliseconds to wait; 0 if it may pass. */
  take(name: string, now: number): number {
    const { dueAt, waitMs } = takeTurn(this.#rate, this.#due.get(name), now);
    this.#due.set(name, dueAt);
    return waitMs;
  }

  /** Returns the wait of the next call without counting one. */
  look(name: string, now: number): number {
    return takeTurn(this.#rate, this.#due.get(name), now).waitMs;
  }

  has(name: string): boolean {
    return this.#due.has(name);
  }
}

/**
 * The allowed rate of failed attempts from one address, or with one key: 20 at once, then one in two seconds. A
 * person's typing mistakes stay below it.
 */
const FAILURES: Rate = { perMinute: 30, burst: 20 };
/** Bound on cached hashes of valid keys. A cached key is not slowed when other keys fail from the same address. */
const KNOWN_MAX = 10_000;

/**
 * Slows down failed authentication. A key that fails again and again, such as a revoked key in a loop, is slowed by
 * itself. Only different wrong keys from one address look like an attack, and slow that address. A text that cannot be
 * a key is refused without a store query, and slows only further such texts from its address.
 */
export class FailureGuard {
  readonly #addresses = new Buckets(FAILURES);
  readonly #keys = new Buckets(FAILURES);
  readonly #malformed = new Buckets(FAILURES);
  readonly #known = new Recent<string, true>(KNOWN_MAX);

  /** Returns the milliseconds to wait before this key may be tried from this address; 0 means now. */
  waitMs(address: string, hash: string | undefined, now: number): number {
    const block = addressBlock(address);
    if (hash === undefined) return this.#malformed.look(block, now);
    if (this.#known.has(hash)) return 0;
    // A key that has failed before waits for its own bucket. Only its first failure counts for its address.
    if (this.#keys.has(hash)) return this.#keys.look(hash, now);
    return this.#addresses.look(block, now);
  }

  failed(address: string, hash: string | undefined, now: number): void {
    const block = addressBlock(address);
    if (hash === undefined) {
      this.#malformed.take(block, now);
      return;
    }
    this.#known.delete(hash);
    if (!this.#keys.has(hash)) this.#addresses.take(block, now);
    this.#keys.take(hash, now);
  }

  passed(hash: string): void {
    this.#known.set(hash, true);
  }
}
