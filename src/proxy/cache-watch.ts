import { cacheLifetimeMs } from '../core/shortening/cache-lifetime.ts';
import type { Clock } from '../ports/clock.ts';
import type { Reading } from './read-request.ts';

export interface Pause {
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
  /** The provider's prompt cache has forgotten it. */
  readonly isCold: boolean;
}

/**
 * How long this conversation has paused. Notes that it was seen now, so ask once a request. `loggedAt`:
 * when the request log saw it last, for one that this process has not seen.
 */
export function pauseOf(reading: Reading, clock: Clock, loggedAt?: number): Pause {
  const { state, identity, view } = reading;
  // Side requests of the client have another prefix, so they keep no cache alive.
  if (identity.kind !== 'main') return { idleMs: 0, isCold: false };
  const now = clock.monotonic();
  const before = state.lastSeenAt;
  state.lastSeenAt = now;
  // An unknown conversation counts as warm, the conservative choice.
  const unseenMs = loggedAt === undefined ? 0 : clock.now() - loggedAt;
  const idleMs = before === undefined ? unseenMs : now - before;
  return { idleMs, isCold: idleMs > cacheLifetimeMs(view) };
}
