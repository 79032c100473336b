import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import { cacheLifetimeMs } from '../core/shortening/cache-lifetime.ts';
import type { Clock } from '../ports/clock.ts';
import type { Reading } from './read-request.ts';

/** Notices when the provider's prompt cache has forgotten a conversation. */

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
    return idleMs > cacheLifetimeMs(reading.view);
  }

  /** An unknown conversation counts as warm, the conservative choice. */
  #idleMs(loggedAt: number | undefined): number {
    return loggedAt === undefined ? 0 : this.#clock.now() - loggedAt;
  }
}
