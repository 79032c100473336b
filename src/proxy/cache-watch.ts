import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import { cacheLifetimeMs } from '../core/shortening/cache-lifetime.ts';
import type { Clock } from '../ports/clock.ts';
import type { Reading } from './read-request.ts';

/** Notices when the provider's prompt cache has forgotten a conversation. */

// Conversations whose last request is remembered; older ones count as warm, which is the careful side.
const CONVERSATIONS_MAX = 1_024;

export interface Pause {
  /** Milliseconds since the last request. */
  readonly idleMs: number;
  readonly isCold: boolean;
}

export class CacheWatch {
  readonly #clock: Clock;
  readonly #lastSeen = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * How long this conversation has paused, and whether its cache is cold by now. Notes that it was seen
   * now: ask once a request. `loggedAt`: when the request log saw it last, for one that this process has
   * not seen.
   */
  look(reading: Reading, loggedAt?: number): Pause {
    const { place, identity } = reading;
    // What else a client asks about a conversation has another prefix, and keeps no cache alive.
    if (identity.kind !== 'main') return { idleMs: 0, isCold: false };
    const key = `${place.space}:${place.conversation}`;
    const now = this.#clock.monotonic();
    const before = this.#lastSeen.get(key);
    this.#lastSeen.delete(key);
    this.#lastSeen.set(key, now);
    forgetOldest(this.#lastSeen, CONVERSATIONS_MAX);
    const idleMs = before === undefined ? this.#idleMs(loggedAt) : now - before;
    return { idleMs, isCold: idleMs > cacheLifetimeMs(reading.view) };
  }

  /** An unknown conversation counts as warm, the conservative choice. */
  #idleMs(loggedAt: number | undefined): number {
    return loggedAt === undefined ? 0 : this.#clock.now() - loggedAt;
  }
}
