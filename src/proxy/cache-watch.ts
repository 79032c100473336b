import type { ConversationOwner, LongCache } from '../core/ledger/entries.ts';
import { cacheLifetimeMs, hasLongCache } from '../core/shortening/pricing.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Usage } from '../core/dialects/answer.ts';
import { dialectOf } from '../core/dialects/dialects.ts';
import type { Edit } from '../core/plan/item-edits.ts';
import { afterPause, longCacheEdits, wasServed } from '../core/shortening/long-cache.ts';
import type { Modes } from '../core/http/modes.ts';
import type { HandlerSettings } from '../core/settings/settings.ts';
import type { Deadline } from './deadline.ts';
import type { Reading } from './conversations.ts';

/**
 * How long a conversation has paused, and whether the provider's prompt cache has forgotten it
 * since. An earlier process or another node may have served the conversation since; the ledger shows it.
 */

interface Pause {
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
  readonly #startedAt: number;

  constructor(dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>) {
    this.#dependencies = dependencies;
    this.#startedAt = dependencies.clock.now();
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
  async #notedMs({ place, state }: Reading, withinMs: number): Promise<number> {
    const { clock, ledger } = this.#dependencies;
    const address = lastRequestOf(place);
    const entry = (await ledger.find([address], withinMs)).get(address);
    if (entry === undefined) return 0;
    // The last request may have come up to a minute after the one that was noted.
    const notedMs = Math.max(0, clock.now() - entry.at - NOTED_MS);
    if (!ledger.isShared && entry.at < this.#startedAt) state.resumedAfterMs ??= notedMs;
    return notedMs;
  }

  /** No request waits for it. */
  #note({ state, place }: Reading, now: number): void {
    const { clock, ledger } = this.#dependencies;
    if (now - (state.notedAt ?? -Infinity) < NOTED_MS) return;
    state.notedAt = now;
    void ledger.record([{ ...lastRequestOf(place), at: clock.now() }]);
  }
}

function lastRequestOf({ tenant, conversation }: ConversationOwner) {
  return { kind: 'last-request', tenant, conversation } as const;
}

interface LongCacheCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: HandlerSettings;
  readonly deadline: Deadline;
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
}

/**
 * Gives tools and system prompt of a conversation a cache that lives an hour, from the first pause on that it would
 * have bridged; see core/shortening/long-cache.ts. The ledger keeps the decision, so a restart changes nothing.
 */
export class LongCacheWatch {
  readonly #dependencies: Pick<ProxyDependencies, 'ledger' | 'clock'>;

  constructor(dependencies: Pick<ProxyDependencies, 'ledger' | 'clock'>) {
    this.#dependencies = dependencies;
  }

  /** The edits of this request's cache marks. Never throws. */
  async edits(call: LongCacheCall): Promise<readonly Edit[]> {
    const { reading, idleMs } = call;
    const { view } = reading;
    const isAuto = call.settings.cacheTtl === 'auto' && call.modes.compression === 'deterministic';
    if (!isAuto || reading.identity.kind !== 'main' || !hasLongCache(view.dialect)) return [];
    // A quarter of the time: the client's own marks are right too.
    const before = await this.#look(reading, call.deadline.msLeft / 4);
    // Without the earlier decision, the client's own marks are right with every cache.
    if (before === 'unknown') return [];
    const changed = afterPause(before, idleMs);
    const state = changed ?? before;
    if (changed === undefined && state?.isLong !== true) return [];
    const edits = longCacheEdits(view);
    // Nothing to gain where the client marks nothing, or marks all of it itself.
    if (edits.length === 0) return [];
    if (changed !== undefined) await this.#record(reading, changed);
    const isBridging = changed !== undefined && before?.isLong === true && changed.bridged > 0;
    reading.state.longCache = { state, isBridging };
    return state?.isLong === true ? edits : [];
  }

  /** The provider has counted: the long lifetime ends where it did not serve what it was paid for. */
  measured(reading: Reading, usage: Usage | undefined): void {
    const { view, state } = reading;
    if (usage === undefined || state.longCache?.isBridging !== true) return;
    const { tokenRatio } = dialectOf(view.dialect).cachePrices;
    if (!wasServed(usage.cacheRead, view.shell.tokens * tokenRatio)) {
      // The next request is still to come, and this process knows it by heart.
      void this.#end(reading);
    }
  }

  /** The provider refused a request with these marks. */
  async refused(reading: Reading): Promise<void> {
    await this.#end(reading);
  }

  async #end(reading: Reading): Promise<void> {
    const state = { isLong: false, bridged: 0, isOver: true };
    reading.state.longCache = { state, isBridging: false };
    await this.#record(reading, state);
  }

  async #look(reading: Reading, withinMs: number): Promise<LongCache | undefined | 'unknown'> {
    const { place, view } = reading;
    const known = reading.state.longCache;
    if (known !== undefined) return known.state;
    // No answer yet: this conversation is new, so the ledger has nothing of it.
    const isNew = !view.items.some(({ role }) => role === 'assistant');
    const found = isNew
      ? undefined
      : await this.#dependencies.ledger.find([longCacheOf(place)], withinMs);
    const entry = found?.get(longCacheOf(place));
    if (entry === undefined && found?.missing !== undefined) return 'unknown';
    const state =
      entry === undefined
        ? undefined
        : { isLong: entry.isLong, bridged: entry.bridged, isOver: entry.isOver };
    reading.state.longCache = { state, isBridging: false };
    return state;
  }

  async #record({ place }: Reading, state: LongCache): Promise<void> {
    await this.#dependencies.ledger.record([
      { ...longCacheOf(place), ...state, at: this.#dependencies.clock.now() },
    ]);
  }
}

function longCacheOf({ tenant, conversation }: Reading['place']) {
  return { kind: 'long-cache', tenant, conversation } as const;
}
