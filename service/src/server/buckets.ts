import { addressBlock, type Rate, takeTurn } from '../core/rates.ts';

/** Counts calls in this process: one number for each key or address, bounded in number. */

/** More than this and the longest known are forgotten: 100,000 take about 10 MB. */
const BUCKETS_MAX = 100_000;

export class Buckets {
  readonly #rate: Rate;
  readonly #due = new Map<string, number>();

  constructor(rate: Rate) {
    this.#rate = rate;
  }

  /** Milliseconds to wait; 0: this one may pass, and counts. */
  take(name: string, now: number): number {
    const { dueAt, waitMs } = takeTurn(this.#rate, this.#due.get(name), now);
    // Again at the end: what was used last is forgotten last.
    this.#due.delete(name);
    this.#due.set(name, dueAt);
    if (this.#due.size > BUCKETS_MAX) this.#forgetFirst();
    return waitMs;
  }

  /** The same, without counting. */
  look(name: string, now: number): number {
    return takeTurn(this.#rate, this.#due.get(name), now).waitMs;
  }

  has(name: string): boolean {
    return this.#due.has(name);
  }

  #forgetFirst(): void {
    const [first] = this.#due.keys();
    if (first !== undefined) this.#due.delete(first);
  }
}

/** 20 wrong keys at once, then one in two seconds: a typing mistake passes, a search does not. */
const FAILURES: Rate = { perMinute: 30, burst: 20 };
/** Hashes of keys that were good a moment ago: their owners are let in past a neighbour's failures. */
const KNOWN_MAX = 10_000;

/**
 * Failed authentication. A key that fails again and again, as a revoked one in a program's loop does, is
 * slowed by itself. Only different keys from one address look like a search, and slow that address. A
 * text that cannot be a key is refused without a look at the store, so it stops no key of a neighbour.
 */
export class FailureGuard {
  readonly #addresses = new Buckets(FAILURES);
  readonly #keys = new Buckets(FAILURES);
  readonly #malformed = new Buckets(FAILURES);
  readonly #known = new Set<string>();

  /** Milliseconds to wait before this key may be tried from this address; 0: now. */
  waitMs(address: string, hash: string | undefined, now: number): number {
    const block = addressBlock(address);
    if (hash === undefined) return this.#malformed.look(block, now);
    if (this.#known.has(hash)) return 0;
    // It counted for the address when it failed first.
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
    this.#known.delete(hash);
    this.#known.add(hash);
    if (this.#known.size <= KNOWN_MAX) return;
    const [first] = this.#known;
    if (first !== undefined) this.#known.delete(first);
  }
}
