import { addressBlock, type Rate, takeTurn } from '../core/service/rates.ts';

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

  #forgetFirst(): void {
    const [first] = this.#due.keys();
    if (first !== undefined) this.#due.delete(first);
  }
}

/** 20 wrong keys at once, then one in two seconds: a typing mistake passes, a search does not. */
const FAILURES: Rate = { perMinute: 30, burst: 20 };
/** Hashes of keys that were good a moment ago: their owners are let in past a neighbour's failures. */
const KNOWN_MAX = 10_000;

/** Failed authentication, by address. */
export class FailureGuard {
  readonly #buckets = new Buckets(FAILURES);
  readonly #known = new Set<string>();

  /** Milliseconds to wait before this address may try another key; 0: now. */
  waitMs(address: string, hash: string | undefined, now: number): number {
    if (hash !== undefined && this.#known.has(hash)) return 0;
    return this.#buckets.look(addressBlock(address), now);
  }

  failed(address: string, hash: string | undefined, now: number): void {
    if (hash !== undefined) this.#known.delete(hash);
    this.#buckets.take(addressBlock(address), now);
  }

  passed(hash: string): void {
    this.#known.delete(hash);
    this.#known.add(hash);
    if (this.#known.size <= KNOWN_MAX) return;
    const [first] = this.#known;
    if (first !== undefined) this.#known.delete(first);
  }
}
