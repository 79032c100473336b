import { setFlagsFromString } from 'node:v8';
import { IdleCollector } from './idle-collector.ts';

/**
 * V8 lets the heap of a busy process grow to four times of what is alive before it collects, and keeps
 * the space: 87 MB for 21 MB of live objects, measured after 35,000 requests. With one and a half times
 * it collects more often, a few milliseconds at a time and mostly on threads of its own.
 */
const GROWTH_PERCENT = 50;

/**
 * V8 counts the bodies of requests in the same limit, though they are no part of the heap. With the
 * bound above, three bodies of 4 MB make it collect the whole heap. While requests are long, the bound
 * leaves room for their bodies.
 */
const LONG_GROWTH_PERCENT = 300;

/** About 400 kB of body. */
const LONG_TOKENS = 100_000;

/** Milliseconds after the last long request. A person's agent sends the next one within that time. */
const LONG_LASTS_MS = 60_000;

/**
 * Milliseconds after the start. V8 refuses code that was compiled under other flags, and `bin/svc.js`
 * saves what was compiled one second after the start: without this every start compiles all of it again.
 */
const FIRST_MS = 3_000;

/** Bounds the heaps of this process and of its threads, from the next collection of each on. */
export class HeapBound {
  readonly #setFlag: (flag: string) => void;
  readonly #idle: IdleCollector;
  #percent = GROWTH_PERCENT;
  #isBounding = false;
  #untilShort: NodeJS.Timeout | undefined;

  constructor(
    setFlag: (flag: string) => void = setFlagsFromString,
    idle: IdleCollector = new IdleCollector(),
  ) {
    this.#setFlag = setFlag;
    this.#idle = idle;
    setTimeout(() => {
      this.#isBounding = true;
      this.#setGrowth(this.#percent);
    }, FIRST_MS).unref();
  }

  /** To be called with each request that is over. */
  note({ originalInputTokens }: { readonly originalInputTokens: number }): void {
    this.#idle.note();
    if (originalInputTokens < LONG_TOKENS) return;
    if (this.#untilShort !== undefined) {
      this.#untilShort.refresh();
      return;
    }
    this.#setGrowth(LONG_GROWTH_PERCENT);
    this.#untilShort = setTimeout(() => {
      this.#untilShort = undefined;
      this.#setGrowth(GROWTH_PERCENT);
    }, LONG_LASTS_MS).unref();
  }

  #setGrowth(percent: number): void {
    this.#percent = percent;
    if (this.#isBounding) this.#setFlag(`--heap-growing-percent=${percent}`);
  }
}
