import type { ConversationOwner, LongCache } from '../core/ledger/entries.ts';
import { cacheLifetimeMs, hasLongCache } from '../core/shortening/pricing.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Usage } from '../core/dialects/dialect-answer.ts';
import { dialectOf } from '../core/dialects/dialects.ts';
import type { Edit } from '../core/plan/item-edits.ts';
import { afterPause, longCacheEdits, wasServed } from '../core/shortening/long-cache.ts';
import type { Reading } from './conversations.ts';
import type { RecallCall } from './recall.ts';

/**
 * Finds out how long a conversation has paused, and whether the provider's prompt cache has expired meanwhile. If
 * another process has served the conversation, the ledger shows that.
 */

interface Pause {
  /** Milliseconds since the conversation's last request; a lower bound if only the ledger knows it. */
  readonly idleMs: number;
  /** True if the provider's prompt cache must have dropped the conversation: its lifetime is over. */
  readonly isCold: boolean;
}

/** Least milliseconds between two ledger entries about the last request of a conversation. */
const NOTED_MS = 60_000;
const WARM: Pause = { idleMs: 0, isCold: false };

export class CacheWatch {
  readonly #dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>;
  readonly #startedAt: number;

  constructor(dependencies: Pick<ProxyDependencies, 'clock' | 'ledger'>) {
    this.#dependencies = dependencies;
    this.#startedAt = dependencies.clock.now();
  }

  /**
   * Returns the pause before this request, and notes the request, so call it once per request. `withinMs`: the deadline
   * for the ledger. Never throws.
   */
  async pauseOf(reading: Reading, withinMs: number): Promise<Pause> {
    const { state, identity, view } = reading;
    // Requests of other kinds have another prefix, so they do not keep the conversation's cache alive.
    if (identity.kind !== 'main') return WARM;
    const { clock, ledger } = this.#dependencies;
    const now = clock.monotonic();
    const ownMs = state.lastSeenAt === undefined ? Infinity : now - state.lastSeenAt;
    state.lastSeenAt = now;
    const lifetimeMs = cacheLifetimeMs(view);
    // Another process may have served the conversation after this one.
    const isAsked = ownMs === Infinity || (ownMs > lifetimeMs && ledger.isShared);
    const notedMs = isAsked ? await this.#notedMs(reading, withinMs) : Infinity;
    const idleMs = Math.min(ownMs, notedMs);
    this.#note(reading, now);
    return { idleMs, isCold: idleMs > lifetimeMs };
  }

  /**
   * Returns a lower bound of the milliseconds since the last request; 0 if unknown, so that the cache counts as warm.
   */
  async #notedMs({ place, state }: Reading, withinMs: number): Promise<number> {
    const { clock, ledger } = this.#dependencies;
    const address = lastRequestOf(place);
    const entry = (await ledger.find([address], withinMs)).get(address);
    if (entry === undefined) return 0;
    // There is an entry only once a minute, so the last request may be up to a minute later than its entry.
    const notedMs = Math.max(0, clock.now() - entry.at - NOTED_MS);
    if (!ledger.isShared && entry.at < this.#startedAt) state.resumedAfterMs ??= notedMs;
    return notedMs;
  }

  /** Records this request as the last one, at most once a minute. No request waits for the write. */
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

interface LongCacheCall extends Omit<RecallCall, 'bond'> {
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
}

/**
 * Asks the provider to cache a conversation's tools and system prompt for an hour; see core/shortening/long-cache.ts.
 * The ledger has the decision, so it survives a restart.
 */
export class LongCacheWatch {
  readonly #dependencies: Pick<ProxyDependencies, 'ledger' | 'clock'>;

  constructor(dependencies: Pick<ProxyDependencies, 'ledger' | 'clock'>) {
    this.#dependencies = dependencies;
  }

  /** Returns the edits of this request's cache marks. Never throws. */
  async edits(call: LongCacheCall): Promise<readonly Edit[]> {
    const { reading, idleMs } = call;
    const { view } = reading;
    const isAuto = call.settings.cacheTtl === 'auto' && call.modes.compression === 'deterministic';
    if (!isAuto || reading.identity.kind !== 'main' || !hasLongCache(view.dialect)) return [];
    // If the earlier decision is not known in time, the client's own marks stay.
    const before = await this.#look(reading, call.deadline.msLeft / 4);
    if (before === 'unknown') return [];
    const changed = afterPause(before, idleMs);
    const state = changed ?? before;
    if (changed === undefined && state?.isLong !== true) return [];
    const edits = longCacheEdits(view);
    // Nothing changes if the client has no cache marks, or already asks for an hour everywhere.
    if (edits.length === 0) return [];
    if (changed !== undefined) await this.#record(reading, changed);
    const isBridging = changed !== undefined && before?.isLong === true && changed.bridged > 0;
    reading.state.longCache = { state, isBridging };
    return state?.isLong === true ? edits : [];
  }

  /** Stops asking for the one-hour cache if its entry was gone after a pause of less than an hour. */
  measured(reading: Reading, usage: Usage | undefined): void {
    const { view, state } = reading;
    if (usage === undefined || state.longCache?.isBridging !== true) return;
    const { tokenRatio } = dialectOf(view.dialect).cachePrices;
    if (!wasServed(usage.cacheRead, view.shell.tokens * tokenRatio)) {
      void this.refused(reading);
    }
  }

  /** Stops asking for the one-hour cache in this conversation for good. */
  async refused(reading: Reading): Promise<void> {
    const state = { isLong: false, bridged: 0, isOver: true };
    reading.state.longCache = { state, isBridging: false };
    await this.#record(reading, state);
  }

  async #look(reading: Reading, withinMs: number): Promise<LongCache | undefined | 'unknown'> {
    const { place, view } = reading;
    const known = reading.state.longCache;
    if (known !== undefined) return known.state;
    // A conversation without an answer is new, so the ledger has no entry about it.
    const isNew = !view.items.some(({ role }) => role === 'assistant');
    const found = isNew
      ? undefined
      : await this.#dependencies.ledger.find([longCacheOf(place)], withinMs);
    const state = found?.get(longCacheOf(place));
    if (state === undefined && found?.missing !== undefined) return 'unknown';
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
