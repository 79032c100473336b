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
 * How long a conversation has paused, and whether the provider's prompt cache has expired meanwhile. Another process
 * or node may have served the conversation; the ledger shows that.
 */

interface Pause {
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
  /** True if the provider's prompt cache has dropped the conversation. */
  readonly isCold: boolean;
}

/** Least time between two notes about a conversation: one ledger row per request would be wasted. */
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
   * Returns the pause before this request and notes that the conversation is active, so call it once per request.
   * `withinMs`: deadline for the ledger. Never throws.
   */
  async pauseOf(reading: Reading, withinMs: number): Promise<Pause> {
    const { state, identity, view } = reading;
    // A side request has another prefix, so it does not keep the conversation's cache alive.
    if (identity.kind !== 'main') return WARM;
    const { clock, ledger } = this.#dependencies;
    const now = clock.monotonic();
    const ownMs = state.lastSeenAt === undefined ? Infinity : now - state.lastSeenAt;
    state.lastSeenAt = now;
    const lifetimeMs = cacheLifetimeMs(view);
    // Another process or node may have served the conversation more recently than this process.
    const isAsked = ownMs === Infinity || (ownMs > lifetimeMs && ledger.isShared);
    const notedMs = isAsked ? await this.#notedMs(reading, withinMs) : Infinity;
    const idleMs = Math.min(ownMs, notedMs);
    this.#note(reading, now);
    return { idleMs, isCold: idleMs > lifetimeMs };
  }

  /** Returns at least how many milliseconds the last request is ago; 0 if unknown: the cache counts as warm. */
  async #notedMs({ place, state }: Reading, withinMs: number): Promise<number> {
    const { clock, ledger } = this.#dependencies;
    const address = lastRequestOf(place);
    const entry = (await ledger.find([address], withinMs)).get(address);
    if (entry === undefined) return 0;
    // Notes are written once a minute, so the last request may be up to a minute younger than its note.
    const notedMs = Math.max(0, clock.now() - entry.at - NOTED_MS);
    if (!ledger.isShared && entry.at < this.#startedAt) state.resumedAfterMs ??= notedMs;
    return notedMs;
  }

  /** Writes a note about the last request. No request waits for it. */
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
 * Asks the provider to cache a conversation's tools and system prompt for an hour, once a pause would have outlived
 * the short lifetime; see core/shortening/long-cache.ts. The ledger keeps the decision, so it survives a restart.
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
    // A quarter of the deadline: without an answer the client's own marks are used, which is safe.
    const before = await this.#look(reading, call.deadline.msLeft / 4);
    // If the earlier decision is unknown, keep the client's own marks: they are always valid.
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

  /** Compares the provider's counts with what was paid. If the long-lived cache was not used, it is switched off. */
  measured(reading: Reading, usage: Usage | undefined): void {
    const { view, state } = reading;
    if (usage === undefined || state.longCache?.isBridging !== true) return;
    const { tokenRatio } = dialectOf(view.dialect).cachePrices;
    if (!wasServed(usage.cacheRead, view.shell.tokens * tokenRatio)) {
      // Do not wait for the ledger: this process already remembers the decision.
      void this.refused(reading);
    }
  }

  /** Switches the long lifetime off: the provider refused a request with these marks, or did not use them. */
  async refused(reading: Reading): Promise<void> {
    const state = { isLong: false, bridged: 0, isOver: true };
    reading.state.longCache = { state, isBridging: false };
    await this.#record(reading, state);
  }

  async #look(reading: Reading, withinMs: number): Promise<LongCache | undefined | 'unknown'> {
    const { place, view } = reading;
    const known = reading.state.longCache;
    if (known !== undefined) return known.state;
    // A conversation without an answer is new, so the ledger has no entry for it.
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
