import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Growth of the heap in percent before V8 collects garbage. By default a busy process grows to four times its live
 * objects and keeps the space: 87 MB for 21 MB, measured after 35,000 requests. With this bound it collects more
 * often, a few milliseconds at a time and mostly in other threads.
 */
const GROWTH_PERCENT = 50;

/**
 * Growth in percent while requests are long. V8 counts request bodies in this limit, although they are outside the
 * heap; with the bound above, three bodies of 4 MB cause a collection of the whole heap.
 */
const LONG_GROWTH_PERCENT = 300;

/** The value by which V8 uses its own default. */
const UNBOUND_PERCENT = 0;

/** Smallest long request: about 400 kB of body. */
const LONG_TOKENS = 100_000;

/**
 * Growth in percent with many requests. With 64 at once the bound above makes every second collection one of the
 * whole heap: that costs a fifth of all CPU time and saves 15 MB.
 */
const MANY_GROWTH_PERCENT = 150;

/** Requests per second that only programs send; all agents of one user send a few. */
const MANY = 200;
const SECOND_MS = 1_000;

/** How long activity lasts after its last request: an agent sends its next request within that time. */
const LASTS_MS = 60_000;

/**
 * Delay after the start, in milliseconds. V8 refuses compiled code that was saved under other flags, and
 * `bin/svc.js` saves it one second after the start and at its end.
 */
const FIRST_MS = 3_000;

/** Bounds the heaps of this process and its threads, from their next collections on. */
export class HeapBound {
  readonly #setFlag: (flag: string) => void;
  readonly #idle: IdleCollector;
  readonly #long = new Spell(LASTS_MS, () => this.#setGrowth());
  readonly #many = new Spell(LASTS_MS, () => this.#setGrowth());
  #secondFrom = -Infinity;
  #inSecond = 0;
  #isBounding = false;
  readonly #first: NodeJS.Timeout;

  constructor(
    setFlag: (flag: string) => void = setFlagsFromString,
    idle: IdleCollector = new IdleCollector(),
  ) {
    this.#setFlag = setFlag;
    this.#idle = idle;
    this.#first = setTimeout(() => {
      this.#isBounding = true;
      this.#setGrowth();
    }, FIRST_MS).unref();
  }

  /** Leaves V8 with the flags that it had. */
  close(): void {
    clearTimeout(this.#first);
    if (this.#isBounding) this.#setFlag(`--heap-growing-percent=${UNBOUND_PERCENT}`);
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
    }
    this.#inSecond += 1;
    return this.#inSecond;
  }

  #setGrowth(): void {
    if (!this.#isBounding) return;
    const short = this.#many.isOn ? MANY_GROWTH_PERCENT : GROWTH_PERCENT;
    this.#setFlag(`--heap-growing-percent=${this.#long.isOn ? LONG_GROWTH_PERCENT : short}`);
  }
}

/**
 * Idle time before a collection, in milliseconds. Without work V8 keeps the space of a busy hour: 174 MB resident
 * after 750 conversations, and 125 MB after a collection, as at the start.
 */
const IDLE_MS = 30_000;

/** Without this flag V8 compacts only few pages, and 46 MB remain for 21 MB of live objects. */
const MOVES_ALL = 'compact-on-every-full-gc';

/** Collects the garbage of its thread after an idle time. */
export class IdleCollector {
  readonly #busy: Spell;

  constructor(collect: () => void = collectGarbage) {
    this.#busy = new Spell(IDLE_MS, (isBusy) => {
      if (!isBusy) collect();
    });
  }

  note(): void {
    this.#busy.note();
  }
}

/**
 * Node exposes V8's collection only with a flag, but a new context gets it at once. The first collection compacts
 * live objects, the second one releases the emptied pages.
 */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  setFlagsFromString('--no-expose-gc');
  if (typeof collect !== 'function') return;
  setFlagsFromString(`--${MOVES_ALL}`);
  for (const _ of [1, 2]) collect();
  setFlagsFromString(`--no-${MOVES_ALL}`);
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
