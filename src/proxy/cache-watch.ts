import type { ConversationOwner } from '../core/ledger/entries.ts';
import { cacheLifetimeMs } from '../core/shortening/cache-lifetime.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

/**
 * How long a conversation has paused, and whether the provider's prompt cache has forgotten it
 * since. Another node may have served the conversation since; the ledger shows it.
 */

export interface Pause {
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
  /** The provider's prompt cache has forgotten it. */
  readonly isCold: boolean;
}

/** A request is noted for the other nodes once in so long: a row for each would be wasted. */
const NOTED_MS = 60_000;
const WARM: Pause = { idleMs: 0, isCold: false };

export interface PauseFacts {
  /** When the request log saw it last, for a conversation that this process has not seen. */
  readonly loggedAt: number | undefined;
  /** The ledger may take so long. */
  readonly withinMs: number;
}

export class CacheWatch {
  readonly #dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>;

  constructor(dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>) {
    this.#dependencies = dependencies;
  }

  /** Notes that it was seen now, so ask once a request. Never throws. */
  async pauseOf(reading: Reading, { loggedAt, withinMs }: PauseFacts): Promise<Pause> {
    const { state, identity, view } = reading;
    // Side requests of the client have another prefix, so they keep no cache alive.
    if (identity.kind !== 'main') return WARM;
    const { clock, ledger } = this.#dependencies;
    const now = clock.monotonic();
    const before = state.lastSeenAt;
    state.lastSeenAt = now;
    // An unknown conversation counts as warm, the conservative choice.
    const unseenMs = loggedAt === undefined ? 0 : clock.now() - loggedAt;
    const idleMs = before === undefined ? unseenMs : now - before;
    const isCold = idleMs > cacheLifetimeMs(view);
    const isForgotten =
      isCold && ledger.isShared ? await this.#isColdElsewhere(reading, withinMs) : isCold;
    this.#note(reading, now);
    return isForgotten ? { idleMs, isCold: true } : { idleMs: isCold ? 0 : idleMs, isCold: false };
  }

  /** False where another node may have served it while its cache lived. */
  async #isColdElsewhere({ view, place }: Reading, withinMs: number): Promise<boolean> {
    const { clock, ledger } = this.#dependencies;
    const address = addressOf(place);
    const found = await ledger.find([address], withinMs);
    const entry = found.get(address);
    if (entry === undefined) return false;
    // The last request may have come up to a minute after the one that was noted.
    return clock.now() - entry.at > cacheLifetimeMs(view) + NOTED_MS;
  }

  /** No request waits for it. */
  #note({ state, place }: Reading, now: number): void {
    const { clock, ledger } = this.#dependencies;
    if (!ledger.isShared || now - (state.notedAt ?? -Infinity) < NOTED_MS) return;
    state.notedAt = now;
    void ledger.record([{ ...addressOf(place), at: clock.now() }]);
  }
}

function addressOf({ tenant, space, conversation }: ConversationOwner) {
  return { kind: 'last-request', tenant, space, conversation } as const;
}
