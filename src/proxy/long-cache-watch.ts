import type { Usage } from '../core/dialects/answer.ts';
import { dialectOf } from '../core/dialects/dialects.ts';
import type { LongCache } from '../core/ledger/entries.ts';
import type { Edit } from '../core/plan/item-edits.ts';
import { afterPause, longCacheEdits, wasServed } from '../core/shortening/long-cache.ts';
import { hasLongCache } from '../core/shortening/pricing.ts';
import type { Modes } from '../core/http/modes.ts';
import type { ProxySettings } from '../core/settings/settings.ts';
import type { Deadline } from './deadline.ts';
import type { ProxyDependencies } from './dependencies.ts';
import type { Reading } from './read-request.ts';

/**
 * Gives tools and system prompt of a conversation a cache that lives an hour, from the first pause
 * on that it would have bridged; see core/shortening/long-cache.ts. The ledger keeps the decision,
 * so a restart changes nothing.
 */

export interface LongCacheCall {
  readonly reading: Reading;
  readonly modes: Modes;
  readonly settings: ProxySettings;
  readonly deadline: Deadline;
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
}

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
      : await this.#dependencies.ledger.find([addressOf(place)], withinMs);
    const entry = found?.get(addressOf(place));
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
      { ...addressOf(place), ...state, at: this.#dependencies.clock.now() },
    ]);
  }
}

function addressOf({ tenant, conversation }: Reading['place']) {
  return { kind: 'long-cache', tenant, conversation } as const;
}
