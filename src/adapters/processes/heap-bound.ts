import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * How many percent the heap may grow over its live objects before V8 collects garbage. By default the heap of a busy
 * process grows to four times its live objects and stays so large: 87 MB for 21 MB, measured after 35,000 requests.
 * With this bound V8 collects more often, for a few milliseconds each time and mostly in other threads.
 */
const GROWTH_PERCENT = 50;

/**
 * Replaces GROWTH_PERCENT while requests are long. V8 counts request bodies, although they are outside the heap: with
 * GROWTH_PERCENT, three bodies of 4 MB would cause a collection of the whole heap.
 */
const LONG_GROWTH_PERCENT = 300;

/** Input tokens from which a request counts as long: about 400 kB of body. */
const LONG_TOKENS = 100_000;

/**
 * Replaces GROWTH_PERCENT while there are many requests. With 64 concurrent requests GROWTH_PERCENT would make every
 * second collection one of the whole heap, which costs a fifth of all CPU time and saves 15 MB.
 */
const MANY_GROWTH_PERCENT = 150;

/** Requests per second that count as many. All agents of one user together send a few per second. */
const MANY = 200;
const SECOND_MS = 1_000;

/**
 * The size, in bytes, from which the young generation of the main thread grows no further. By default it grows to 32 MB
 * on Node 20 and to 128 MB on Node 24, and stays so large while requests come. That takes 80 MB more memory, and saves
 * no CPU time.
 */
const YOUNG_BYTES_MAX = 16 * 1024 * 1024;

/** The factors by which V8 enlarges a young generation that is too small: the default, and one that keeps its size. */
const YOUNG_FACTOR = { grows: 2, stays: 1 };

/**
 * Time for which LONG_GROWTH_PERCENT still applies after the last long request, and MANY_GROWTH_PERCENT after the last
 * busy second. An agent at work usually sends its next request within this time.
 */
const LASTS_MS = 60_000;

/**
 * Delay after the start before flags are changed. V8 rejects cached code that was saved under other flags, and
 * `bin/svc.js` saves the code cache one second after the start.
 */
const FIRST_MS = 3_000;

/**
 * Bounds the growth of this process's heaps, including those of its threads. A change applies from the next collection.
 */
export class HeapBound {
  readonly #setFlag: (flag: string) => void;
  readonly #idle: IdleCollector;
  readonly #youngBytes: () => number;
  readonly #long = new Spell(LASTS_MS, () => this.#setGrowth());
  readonly #many = new Spell(LASTS_MS, () => this.#setGrowth());
  #secondFrom = -Infinity;
  #inSecond = 0;
  #isBounding = false;
  #isYoungFull = false;
  readonly #first: NodeJS.Timeout;

  constructor(
    setFlag: (flag: string) => void = setFlagsFromString,
    idle: IdleCollector = new IdleCollector(),
    youngBytes: () => number = youngBytesNow,
  ) {
    this.#setFlag = setFlag;
    this.#idle = idle;
    this.#youngBytes = youngBytes;
    this.#first = setTimeout(() => {
      this.#isBounding = true;
      this.#setGrowth();
    }, FIRST_MS).unref();
  }

  /** Sets V8's flags back to their defaults. */
  close(): void {
    clearTimeout(this.#first);
    if (this.#isBounding) {
      // With 0 V8 uses its own default.
      this.#setFlag('--heap-growing-percent=0');
      this.#boundYoung(false);
    }
    this.#isBounding = false;
  }

  note({ originalInputTokens }: { readonly originalInputTokens: number }): void {
    this.#idle.note();
    if (this.#countInSecond() >= MANY) this.#many.note();
    if (originalInputTokens >= LONG_TOKENS) this.#long.note();
  }

  #countInSecond(): number {
    const now = performance.now();
    if (now - this.#secondFrom >= SECOND_MS) {
      this.#secondFrom = now;
      this.#inSecond = 0;
      if (this.#isBounding) this.#boundYoung(this.#youngBytes() >= YOUNG_BYTES_MAX);
    }
    this.#inSecond += 1;
    return this.#inSecond;
  }

  /**
   * Stops the growth of the young generation if `isFull`, and else allows it again, because the collection of an idle
   * process makes the young generation small. Sets the flag again at each call while `isFull`, because Node 20 forgets
   * the flag when a thread starts.
   */
  #boundYoung(isFull: boolean): void {
    if (isFull) this.#setFlag(`--semi-space-growth-factor=${YOUNG_FACTOR.stays}`);
    else if (this.#isYoungFull) this.#setFlag(`--semi-space-growth-factor=${YOUNG_FACTOR.grows}`);
    this.#isYoungFull = isFull;
  }

  #setGrowth(): void {
    if (!this.#isBounding) return;
    const short = this.#many.isOn ? MANY_GROWTH_PERCENT : GROWTH_PERCENT;
    this.#setFlag(`--heap-growing-percent=${this.#long.isOn ? LONG_GROWTH_PERCENT : short}`);
  }
}

/** Returns the size of this thread's young generation, used or not. */
function youngBytesNow(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find(({ space_name: name }) => name === 'new_space')?.space_size ?? 0;
}

/**
 * Idle time before a collection. Without work V8 does not collect: the process keeps 174 MB resident after 750
 * conversations. A collection reduces that to 125 MB, as after the start.
 */
const IDLE_MS = 30_000;

/** V8's flag to compact all pages. Without it, 46 MB remain for 21 MB of live objects. */
const MOVES_ALL = 'compact-on-every-full-gc';

/** Collects the garbage of its thread after an idle time. */
export class IdleCollector {
  readonly #busy: Spell;

  constructor(collect: () => void = () => collectGarbage()) {
    this.#busy = new Spell(IDLE_MS, (isBusy) => {
      if (!isBusy) collect();
    });
  }

  note(): void {
    this.#busy.note();
  }
}

/**
 * Collects all garbage of this thread. `gc()` exists only in a context that is created while a flag is set. Flags apply
 * to the whole process, so the store's thread may remove the flag in between; then nothing is collected this time. The
 * first collection compacts live objects, the second one releases the emptied pages.
 */
export function collectGarbage(setFlag: (flag: string) => void = setFlagsFromString): void {
  setFlag('--expose-gc');
  // Without `globalThis.` this would throw where gc() does not exist, and an error of another context is no `Error` of
  // this one.
  const collect: unknown = runInNewContext('globalThis.gc');
  setFlag('--no-expose-gc');
  if (typeof collect !== 'function') return;
  setFlag(`--${MOVES_ALL}`);
  for (const _ of [1, 2]) collect();
  setFlag(`--no-${MOVES_ALL}`);
}

/** A period that begins with the first call of note() and ends when no call has come for `lastsMs`. */
class Spell {
  readonly #lastsMs: number;
  readonly #changed: (isOn: boolean) => void;
  #untilOver: NodeJS.Timeout | undefined;

  /** `changed` is called when the period begins and when it ends. */
  constructor(lastsMs: number, changed: (isOn: boolean) => void) {
    this.#lastsMs = lastsMs;
    this.#changed = changed;
  }

  get isOn(): boolean {
    return this.#untilOver !== undefined;
  }

  note(): void {
    if (this.#untilOver !== undefined) {
      this.#untilOver.refresh();
      return;
    }
    this.#untilOver = setTimeout(() => {
      this.#untilOver = undefined;
      this.#changed(false);
    }, this.#lastsMs).unref();
    this.#changed(true);
  }
}
