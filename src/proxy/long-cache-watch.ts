import { forgetOldest } from '../core/bytes/forget-oldest.ts';
import type { Usage } from '../core/dialects/answer.ts';
import { dialectOf } from '../core/dialects/dialects.ts';
import { conversationKeyOf, type LongCache } from '../core/ledger/entries.ts';
import type { Edit } from '../core/plan/edits.ts';
import { afterPause, longCacheEdits, wasServed } from '../core/shortening/long-cache.ts';
import type { ProxyParts } from './parts.ts';
import type { Reading } from './read-request.ts';

/**
 * Gives tools and system prompt of a conversation a cache that lives an hour, from the first pause on
 * that it would have bridged; see core/shortening/long-cache.ts. What was decided is in the ledger, so
 * a restart changes nothing.
 */

// As many as the other watches of conversations remember.
const CONVERSATIONS_MAX = 1_024;

interface Known {
  readonly state: LongCache | undefined;
  /** Its newest request came after a pause that the long lifetime should have bridged. */
  readonly isBridging: boolean;
}

export interface LongCacheCall {
  readonly reading: Reading;
  /** Milliseconds since the conversation's last request. */
  readonly idleMs: number;
  readonly withinMs: number;
}

export class LongCacheWatch {
  readonly #parts: Pick<ProxyParts, 'ledger' | 'clock'>;
  /** In the order of last use. */
  readonly #known = new Map<string, Known>();

  constructor(parts: Pick<ProxyParts, 'ledger' | 'clock'>) {
    this.#parts = parts;
  }

  /** What is written into this request's cache marks. Never throws. */
  async edits({ reading, idleMs, withinMs }: LongCacheCall): Promise<readonly Edit[]> {
    const { view, place } = reading;
    const hasLong = dialectOf(view.dialect).longCachePrices !== undefined;
    if (reading.identity.kind !== 'main' || !hasLong) return [];
    const before = await this.#look(reading, withinMs);
    // What was decided is not known: the client's own marks are right with every cache.
    if (before === 'unknown') return [];
    const changed = afterPause(before, idleMs);
    const state = changed ?? before;
    if (changed === undefined && state?.isLong !== true) return [];
    const edits = longCacheEdits(view);
    // Nothing to gain where the client marks nothing, or marks all of it itself.
    if (edits.length === 0) return [];
    if (changed !== undefined) await this.#record(reading, changed);
    const isBridging = changed !== undefined && before?.isLong === true && changed.bridged > 0;
    this.#note(conversationKeyOf(place), { state, isBridging });
    return state?.isLong === true ? edits : [];
  }

  /** The provider has counted: the long lifetime ends where it did not serve what it was paid for. */
  measured({ place, view }: Reading, usage: Usage | undefined): void {
    const known = this.#known.get(conversationKeyOf(place));
    if (usage === undefined || known?.isBridging !== true) return;
    const { tokenRatio } = dialectOf(view.dialect).cachePrices;
    if (!wasServed(usage.cacheRead, view.shell.tokens * tokenRatio)) this.#end(place);
  }

  /** The provider refused a request with these marks. */
  refused({ place }: Reading): void {
    this.#end(place);
  }

  #end(place: Reading['place']): void {
    const state = { isLong: false, bridged: 0, isOver: true };
    this.#note(conversationKeyOf(place), { state, isBridging: false });
    // The next request is still to come, and this process knows it by heart.
    void this.#parts.ledger.record([
      { ...addressOf(place), ...state, at: this.#parts.clock.now() },
    ]);
  }

  async #look(reading: Reading, withinMs: number): Promise<LongCache | undefined | 'unknown'> {
    const { place, view } = reading;
    const known = this.#known.get(conversationKeyOf(place));
    if (known !== undefined) return known.state;
    // Nothing was answered yet: nobody has seen this conversation before.
    const isNew = !view.items.some(({ role }) => role === 'assistant');
    const found = isNew ? undefined : await this.#parts.ledger.find([addressOf(place)], withinMs);
    const entry = found?.get(addressOf(place));
    if (entry === undefined && found?.missing !== undefined) return 'unknown';
    const state =
      entry === undefined
        ? undefined
        : { isLong: entry.isLong, bridged: entry.bridged, isOver: entry.isOver };
    this.#note(conversationKeyOf(place), { state, isBridging: false });
    return state;
  }

  async #record({ place }: Reading, state: LongCache): Promise<void> {
    await this.#parts.ledger.record([
      { ...addressOf(place), ...state, at: this.#parts.clock.now() },
    ]);
  }

  #note(key: string, known: Known): void {
    this.#known.delete(key);
    this.#known.set(key, known);
    forgetOldest(this.#known, CONVERSATIONS_MAX);
  }
}

function addressOf({ tenant, space, conversation }: Reading['place']) {
  return { kind: 'long-cache', tenant, space, conversation } as const;
}
