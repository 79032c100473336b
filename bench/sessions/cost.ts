import type { LongCache } from '../../src/core/ledger/entries.ts';
import { EXCERPT_TOKENS_MAX } from '../../src/core/memory/reference.ts';
import { afterPause } from '../../src/core/shortening/long-cache.ts';
import { cachePrices } from '../../src/core/shortening/pricing.ts';
import { factsOfModel } from '../../src/core/settings/model-facts.ts';
import type { Elided } from './planner.ts';
import type { Session } from './sessions.ts';

/** Prices what each call left out, by the strict rule of the provider's prompt cache. */

export interface Cost {
  readonly price: number;
  readonly tokens: number;
  /** Calls at which something that the cache held had changed. */
  readonly breaks: number;
  /** Times that an answer quotes what was left out and not yet read again. */
  readonly needs: number;
}

export interface Conditions {
  /** The cache's life after its last use; Infinity: always alive. */
  readonly cacheMs: number;
  readonly needs: Needs;
  /** As the setting: whether tools and system prompt get a cache of an hour after a pause. */
  readonly cacheTtl?: 'client' | 'auto';
}

/**
 * What is done when the model quotes what was left out. 'ignored': nothing, as if it did not need it.
 * 'whole': one more call reads all of it, and it is carried ever after. 'parts': the call reads at most
 * as much as `svc memory get` gives at once, and what was read leaves again with a later batch, at most
 * twice; then the next need reads it again.
 */
export type Needs = 'ignored' | 'whole' | 'parts';

const HOUR_MS = 3_600_000;
// How far before a mark the provider looks for an entry. OpenAI's entries are found wherever they end.
const LOOK_BACK_BLOCKS = { 'claude-code': 20, codex: Infinity } as const;
// The call that reads an output again.
const READING_TOKENS = 60;
// What stands for it once it has left again.
const STUB_TOKENS = 50;
// As the product does: LEAVES_AGAIN_MAX, and the settings' rounds that are kept.
const LEAVES_AGAIN_MAX = 2;
const KEEP_ROUNDS = 4;

/**
 * An entry exists where a request ended and behind the system prompt, nowhere else, and is found only
 * when it ends at most `LOOK_BACK_BLOCKS` before the end of the new one. What is not read is written.
 */
export function priceSession(
  session: Session,
  plans: readonly Elided[],
  { cacheMs, needs, cacheTtl = 'client' }: Conditions,
): Cost {
  // A cache that never dies has no pauses, and OpenAI no lifetimes to choose.
  const isAuto = cacheTtl === 'auto' && cacheMs < Infinity && session.kind === 'claude-code';
  const cache = new Cache(session, cacheMs, isAuto);
  const fetches = new Fetches(session, needs);
  const { model, dialect } = session;
  const prices = cachePrices({ dialect, facts: factsOfModel(model) });
  const cost = { price: 0, tokens: 0, breaks: 0, needs: 0 };
  let [start, before] = [0, NOTHING];
  for (const [call, { a, b, ts }] of session.calls.entries()) {
    const elided = plans[call] ?? NOTHING;
    if (a !== start) fetches.forget();
    const changed = a === start ? fetches.follow(call, before, elided) : Infinity;
    [start, before] = [a, elided];
    const all = lengthOf(session, { a, b, elided, fetches });
    const { read, isBroken, extra } = cache.request({ a, b, ts, elided, fetches, changed });
    if (isBroken) cost.breaks += 1;
    const hour = (prices.writeHour - prices.write) * extra;
    cost.price += prices.read * read + prices.write * (all - read) + hour;
    cost.tokens += all;
    for (const more of fetches.needed(call, elided)) {
      cost.needs += 1;
      cost.price += prices.read * all + prices.write * more;
    }
  }
  return cost;
}

interface Fetch {
  readonly item: number;
  /** The item before which it stands. */
  readonly at: number;
  readonly call: number;
  readonly tokens: number;
  /** How often the same item was read before it. */
  readonly earlier: number;
  hasLeft: boolean;
}

/** What the model has read again, and where it stands. */
class Fetches {
  readonly #session: Session;
  readonly #needs: Needs;
  #all: Fetch[] = [];

  constructor(session: Session, needs: Needs) {
    this.#session = session;
    this.#needs = needs;
  }

  forget(): void {
    this.#all = [];
  }

  /** Leaves and comes back with the rest. Returns the first item from which the request changes. */
  follow(call: number, before: Elided, elided: Elided): number {
    const isBatch = [...elided.keys()].some((item) => !before.has(item));
    const comesBack = before.size > 0 && elided.size === 0;
    let changed = Infinity;
    for (const fetch of this.#all) {
      const leaves = isBatch && call - fetch.call > KEEP_ROUNDS && fetch.earlier < LEAVES_AGAIN_MAX;
      const hasLeft = !comesBack && this.#needs === 'parts' && (fetch.hasLeft || leaves);
      if (hasLeft !== fetch.hasLeft) changed = Math.min(changed, fetch.at - 1);
      fetch.hasLeft = hasLeft;
    }
    return changed;
  }

  /** Tokens of what was read before this item. */
  tokensBefore(item: number): number {
    return this.#all.reduce((sum, { at, tokens, hasLeft }) => {
      if (at > item) return sum;
      return sum + (hasLeft ? READING_TOKENS + STUB_TOKENS : tokens);
    }, 0);
  }

  /** Tokens of each text that this call's answer needs and has read again. */
  needed(call: number, elided: Elided): readonly number[] {
    if (this.#needs === 'ignored') return [];
    const { needs, calls } = this.#session;
    const read: number[] = [];
    for (const holders of needs.get(call) ?? []) {
      const item = holders.at(-1);
      const isHeld = holders.some((it) => !elided.has(it) || this.#holds(it));
      if (item === undefined || isHeld) continue;
      const tokens = this.#tokensOf(item) + READING_TOKENS;
      const earlier = this.#all.filter((fetch) => fetch.item === item).length;
      const at = calls[call]?.b ?? 0;
      this.#all.push({ item, at, call, tokens, earlier, hasLeft: false });
      read.push(tokens);
    }
    return read;
  }

  #holds(item: number): boolean {
    return this.#all.some((fetch) => fetch.item === item && !fetch.hasLeft);
  }

  #tokensOf(item: number): number {
    const { position, tokenRatio } = this.#session;
    const whole = (position[item + 1] ?? 0) - (position[item] ?? 0);
    return this.#needs === 'parts' ? Math.min(whole, EXCERPT_TOKENS_MAX * tokenRatio) : whole;
  }
}

const NOTHING: Elided = new Map();

interface CachedRequest {
  readonly a: number;
  readonly b: number;
  readonly ts: number;
  readonly elided: Elided;
  readonly fetches: Fetches;
  /** The first item from which what was read again has changed. */
  readonly changed: number;
}

interface CacheUse {
  /** Tokens that are read from the cache. */
  readonly read: number;
  readonly isBroken: boolean;
  /** Tokens that are written to entries that live an hour. */
  readonly extra: number;
}

class Cache {
  readonly #session: Session;
  readonly #cacheMs: number;
  /** When the entry that ends at this item was last used. */
  #entries = new Map<number, number>();
  #systemTs = -Infinity;
  readonly #isAuto: boolean;
  #long: LongCache | undefined;
  #before: Pick<CachedRequest, 'a' | 'b' | 'elided'> = { a: 0, b: 0, elided: NOTHING };

  constructor(session: Session, cacheMs: number, isAuto: boolean) {
    this.#session = session;
    this.#cacheMs = cacheMs;
    this.#isAuto = isAuto;
  }

  /** Tokens that this request reads from the cache. */
  request({ a, b, ts, elided, fetches, ...request }: CachedRequest): CacheUse {
    const { staticTokens, kind } = this.#session;
    if (a !== this.#before.a) this.#entries.clear();
    const changed = Math.min(firstChange(this.#before, elided), request.changed);
    const isBroken = a === this.#before.a && changed < this.#before.b;
    let end = -1;
    for (const [at, usedTs] of this.#entries) {
      const isGone = ts - usedTs > this.#cacheMs || at > changed;
      if (isGone) this.#entries.delete(at);
      else if (at <= b && b - at <= LOOK_BACK_BLOCKS[kind]) end = Math.max(end, at);
    }
    const idleMs = ts - this.#systemTs;
    const lives = idleMs <= (this.#long?.isLong === true ? HOUR_MS : this.#cacheMs);
    const system = lives ? staticTokens : 0;
    if (this.#isAuto && idleMs < Infinity)
      this.#long = afterPause(this.#long, idleMs) ?? this.#long;
    const prefix = end < 0 ? 0 : lengthOf(this.#session, { a, b: end, elided, fetches });
    if (end >= 0) this.#entries.set(end, ts);
    this.#entries.set(b, ts);
    this.#systemTs = ts;
    this.#before = { a, b, elided };
    const read = Math.max(system, prefix);
    const isWritten = read < staticTokens && this.#long?.isLong === true;
    return { read, isBroken, extra: isWritten ? staticTokens : 0 };
  }
}

/** The first item that one of the two left out and the other did not. */
function firstChange(before: { readonly elided: Elided }, elided: Elided): number {
  let first = Infinity;
  for (const item of elided.keys()) if (!before.elided.has(item)) first = Math.min(first, item);
  for (const item of before.elided.keys()) if (!elided.has(item)) first = Math.min(first, item);
  return first;
}

function lengthOf(
  { position, staticTokens }: Session,
  { a, b, elided, fetches }: Pick<CachedRequest, 'a' | 'b' | 'elided' | 'fetches'>,
): number {
  let tokens = staticTokens + (position[b] ?? 0) - (position[a] ?? 0) + fetches.tokensBefore(b);
  for (const [item, saved] of elided) if (item >= a && item < b) tokens -= saved;
  return tokens;
}
