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
  /** Each first need costs one more call, the text written again, and carried ever after. */
  readonly countsNeeds: boolean;
}

const READ = 0.1;
const WRITE = 1.25;
// How far before a mark the provider looks for an entry. OpenAI's entries are found wherever they end.
const LOOK_BACK_BLOCKS = { 'claude-code': 20, codex: Infinity } as const;
// The call that reads an output again.
const READING_TOKENS = 60;

/**
 * An entry exists where a request ended and behind the system prompt, nowhere else, and is found only
 * when it ends at most `LOOK_BACK_BLOCKS` before the end of the new one. What is not read is written.
 */
export function priceSession(
  session: Session,
  plans: readonly Elided[],
  { cacheMs, countsNeeds }: Conditions,
): Cost {
  const state = new Cache(session, cacheMs);
  const fetched = new Set<number>();
  let [price, tokens, breaks, needs, carried, start] = [0, 0, 0, 0, 0, 0];
  for (const [call, { a, b, ts }] of session.calls.entries()) {
    const elided = plans[call] ?? NOTHING;
    if (a !== start) [start, carried] = [a, 0];
    const all = lengthOf(session, { a, b, elided }) + carried;
    const { read, isBroken } = state.request({ a, b, ts, elided, carried });
    if (isBroken) breaks += 1;
    price += READ * read + WRITE * (all - read);
    tokens += all;
    if (!countsNeeds) continue;
    for (const holders of session.needs.get(call) ?? []) {
      const isHeld = holders.some((item) => !elided.has(item) || fetched.has(item));
      const item = holders.at(-1);
      if (isHeld || item === undefined) continue;
      fetched.add(item);
      needs += 1;
      const more =
        (session.position[item + 1] ?? 0) - (session.position[item] ?? 0) + READING_TOKENS;
      price += READ * all + WRITE * more;
      carried += more;
    }
  }
  return { price, tokens, breaks, needs };
}

const NOTHING: Elided = new Map();

interface CachedRequest {
  readonly a: number;
  readonly b: number;
  readonly ts: number;
  readonly elided: Elided;
  readonly carried: number;
}

class Cache {
  readonly #session: Session;
  readonly #cacheMs: number;
  /** When the entry that ends at this item was last used. */
  #entries = new Map<number, number>();
  #systemTs = -Infinity;
  #before: Pick<CachedRequest, 'a' | 'b' | 'elided'> = { a: 0, b: 0, elided: NOTHING };

  constructor(session: Session, cacheMs: number) {
    this.#session = session;
    this.#cacheMs = cacheMs;
  }

  /** Tokens that this request reads from the cache. */
  request({ a, b, ts, elided, carried }: CachedRequest): { read: number; isBroken: boolean } {
    const { staticTokens, kind } = this.#session;
    if (a !== this.#before.a) this.#entries.clear();
    const changed = firstChange(this.#before, elided);
    const isBroken = a === this.#before.a && changed < this.#before.b;
    let end = -1;
    for (const [at, usedTs] of this.#entries) {
      const isGone = ts - usedTs > this.#cacheMs || at > changed;
      if (isGone) this.#entries.delete(at);
      else if (at <= b && b - at <= LOOK_BACK_BLOCKS[kind]) end = Math.max(end, at);
    }
    const system = ts - this.#systemTs <= this.#cacheMs ? staticTokens : 0;
    const prefix = end < 0 ? 0 : lengthOf(this.#session, { a, b: end, elided }) + carried;
    if (end >= 0) this.#entries.set(end, ts);
    this.#entries.set(b, ts);
    this.#systemTs = ts;
    this.#before = { a, b, elided };
    return { read: Math.max(system, prefix), isBroken };
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
  { a, b, elided }: { readonly a: number; readonly b: number; readonly elided: Elided },
): number {
  let tokens = staticTokens + (position[b] ?? 0) - (position[a] ?? 0);
  for (const [item, saved] of elided) if (item >= a && item < b) tokens -= saved;
  return tokens;
}
