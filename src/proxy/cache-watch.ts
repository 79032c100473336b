import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import type { Item, Shell } from '../core/conversation/view.ts';
import type { Clock } from '../ports/clock.ts';
import type { Reading } from './read-request.ts';

/** Notices when the provider's prompt cache has forgotten a conversation. */

// It lives 5 minutes after its last use, or 1 hour where the request asks for it.
const CACHE_MS = 300_000;
const CACHE_LONG_MS = 3_600_000;
// Conversations whose last request is remembered; older ones count as warm, which is the careful side.
const CONVERSATIONS_MAX = 1_024;

export class CacheWatch {
  readonly #clock: Clock;
  readonly #lastSeen = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * True when the cache is cold for this conversation. Notes that it was seen now: ask once a request.
   * `loggedAt`: when the request log saw it last, for one that this process has not seen.
   */
  isCold(reading: Reading, loggedAt?: number): boolean {
    const { place, identity } = reading;
    // What else a client asks about a conversation has another prefix, and keeps no cache alive.
    if (identity.kind !== 'main') return false;
    const key = `${place.space}:${place.conversation}`;
    const now = this.#clock.monotonic();
    const before = this.#lastSeen.get(key);
    this.#lastSeen.delete(key);
    this.#lastSeen.set(key, now);
    forgetOldest(this.#lastSeen, CONVERSATIONS_MAX);
    const idleMs = before === undefined ? this.#idleMs(loggedAt) : now - before;
    return idleMs > CACHE_MS && idleMs > cacheMsOf(asksForHour(reading));
  }

  /** Of a conversation that nobody has seen: none, which is the careful side. */
  #idleMs(loggedAt: number | undefined): number {
    return loggedAt === undefined ? 0 : this.#clock.now() - loggedAt;
  }
}

/** How long the provider's cache lives after its last use. */
export function cacheMsOf(isLong: boolean): number {
  return isLong ? CACHE_LONG_MS : CACHE_MS;
}

const HOUR_MARK = Buffer.from('"ttl":"1h"');

// Items and shells are kept from request to request: of a session of 4 MB only what is new is
// searched, where all of it would be 10 ms at every request.
const marked = new WeakMap<Item | Shell, boolean>();

/** The request marks something to be cached for an hour. */
export function asksForHour({ view }: Pick<Reading, 'view'>): boolean {
  const { bytes, items, list, shell } = view;
  const isMarked = (start: number, end?: number): boolean =>
    bytes.subarray(start, end).includes(HOUR_MARK);
  return (
    remembered(shell, () => isMarked(0, list.start) || isMarked(list.end)) ||
    items.some((item) => remembered(item, () => isMarked(item.start, item.end)))
  );
}

function remembered(part: Item | Shell, look: () => boolean): boolean {
  const known = marked.get(part);
  if (known !== undefined) return known;
  const found = look();
  marked.set(part, found);
  return found;
}
