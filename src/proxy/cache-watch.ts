import type { Clock } from '../ports/clock.ts';
import type { Reading } from './read-request.ts';

/** Notices when the provider's prompt cache has forgotten a conversation. */

// It lives 5 minutes after its last use, or 1 hour where the request asks for it (SPEC).
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

  /** True when the cache is cold for this conversation. Notes that it was seen now: ask once a request. */
  isCold(reading: Reading): boolean {
    const { place, identity } = reading;
    // What else a client asks about a conversation has another prefix, and keeps no cache alive.
    if (identity.kind !== 'main') return false;
    const key = `${place.space}:${place.conversation}`;
    const now = this.#clock.monotonic();
    const before = this.#lastSeen.get(key);
    this.#lastSeen.delete(key);
    this.#lastSeen.set(key, now);
    const oldest = this.#lastSeen.keys().next();
    if (this.#lastSeen.size > CONVERSATIONS_MAX && oldest.value !== undefined) {
      this.#lastSeen.delete(oldest.value);
    }
    if (before === undefined || now - before <= CACHE_MS) return false;
    return now - before > CACHE_LONG_MS || !asksForHour(reading);
  }
}

/** The request marks something to be cached for an hour. */
export function asksForHour({ view }: Reading): boolean {
  return view.bytes.includes('"ttl":"1h"');
}
