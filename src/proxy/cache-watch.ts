import type { ConversationOwner } from '../core/ledger/entries.ts';
import { cacheLifetimeMs } from '../core/shortening/pricing.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

/**
 * How long a conversation has paused, and whether the provider's prompt cache has forgotten it
 * since. An earlier process or another node may have served the conversation since; the ledger shows it.
 */

export interface Pause {
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
  /** The provider's prompt cache has forgotten it. */
  readonly isCold: boolean;
}

/** A request is noted once in so long: a row for each would be wasted. */
const NOTED_MS = 60_000;
const WARM: Pause = { idleMs: 0, isCold: false };

export class CacheWatch {
  readonly #dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>;

  constructor(dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>) {
    this.#dependencies = dependencies;
  }

  /** Notes that it was seen now, so ask once a request. The ledger may take so long. Never throws. */
  async pauseOf(reading: Reading, withinMs: number): Promise<Pause> {
    const { state, identity, view } = reading;
    // Side requests of the client have another prefix, so they keep no cache alive.
    if (identity.kind !== 'main') return WARM;
    const { clock, ledger } = this.#dependencies;
    const now = clock.monotonic();
    const ownMs = state.lastSeenAt === undefined ? Infinity : now - state.lastSeenAt;
    state.lastSeenAt = now;
    const lifetimeMs = cacheLifetimeMs(view);
    // An earlier process, or another node, may have served it since this process did.
    const isAsked = ownMs === Infinity || (ownMs > lifetimeMs && ledger.isShared);
    const notedMs = isAsked ? await this.#notedMs(reading, withinMs) : Infinity;
    const idleMs = Math.min(ownMs, notedMs);
    this.#note(reading, now);
    return { idleMs, isCold: idleMs > lifetimeMs };
  }

  /** Milliseconds since its last request at least; 0 where that is not known, the conservative choice. */
  async #notedMs({ place }: Reading, withinMs: number): Promise<number> {
    const { clock, ledger } = this.#dependencies;
    const address = addressOf(place);
    const entry = (await ledger.find([address], withinMs)).get(address);
    // The last request may have come up to a minute after the one that was noted.
    return entry === undefined ? 0 : Math.max(0, clock.now() - entry.at - NOTED_MS);
  }

  /** No request waits for it. */
  #note({ state, place }: Reading, now: number): void {
    const { clock, ledger } = this.#dependencies;
    if (now - (state.notedAt ?? -Infinity) < NOTED_MS) return;
    state.notedAt = now;
    void ledger.record([{ ...addressOf(place), at: clock.now() }]);
  }
}

function addressOf({ tenant, conversation }: ConversationOwner) {
  return { kind: 'last-request', tenant, conversation } as const;
}
