import type { LeftOut } from '../core/ledger/entries.ts';
import {
  batchesIn,
  elisionAddresses,
  type ElisionPlace,
  isSameBatches,
} from '../core/shortening/elisions.ts';
import type { FoundEntries, LedgerMiss } from '../core/ledger/found-entries.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { KnownBatches } from './conversation-state.ts';

/**
 * Finds the batches of a conversation in the ledger. Those of the items that an earlier request asked
 * for are known by heart, so the ledger is asked for new items alone.
 */

/** So long the ledger itself believes that there is no entry: another process may write one. */
const LOOKED_UP_MS = 60_000;

const NO_BATCHES: readonly LeftOut[] = [];

export interface FoundBatches {
  /** The very list of the last request where there is no new one. */
  readonly batches: readonly LeftOut[];
  readonly isSame: boolean;
  readonly missing: LedgerMiss | undefined;
}

interface Lookup {
  readonly place: ElisionPlace;
  readonly before: KnownBatches | undefined;
  /** The first item that the ledger is asked for. */
  readonly first: number;
}

export class BatchLookup {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  /** Counts the batches that this process has recorded: forks of a conversation share them. */
  #recorded = 0;

  constructor(ledger: Ledger, clock: Clock) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** To be called when this process records a batch, of whatever conversation. */
  noteRecorded(): void {
    this.#recorded += 1;
  }

  /** `before`: what the last request of the conversation found. */
  async find(
    place: ElisionPlace,
    before: KnownBatches | undefined,
    withinMs: number,
  ): Promise<FoundBatches & { readonly known: KnownBatches }> {
    const first = this.#firstNewItem(place, before);
    const recorded = this.#recorded;
    const found = await this.#ledger.find(elisionAddresses(place, first), withinMs);
    const lookup = { place, before, first };
    const { batches, isSame } = batchesOf(lookup, found);
    const known = { ...this.#lookedUp(lookup), recorded, batches };
    return { batches, isSame, missing: found.missing, known };
  }

  /** Where nothing has changed since, the items before it were looked up by an earlier request. */
  #firstNewItem({ view }: ElisionPlace, before: KnownBatches | undefined): number {
    // Another node may have recorded a batch at any of them.
    if (this.#ledger.isShared) return 0;
    if (before === undefined || before.recorded !== this.#recorded) return 0;
    if (before.generation !== this.#ledger.generation()) return 0;
    if (before.until < this.#clock.monotonic()) return 0;
    return view.items[before.last]?.fingerprint === before.fingerprint ? before.last + 1 : 0;
  }

  #lookedUp({ place: { view }, before, first }: Lookup) {
    const last = view.items.length - 1;
    const isFurther = first > 0 && before !== undefined;
    return {
      last,
      fingerprint: view.items[last]?.fingerprint ?? '',
      generation: this.#ledger.generation(),
      until: isFurther ? before.until : this.#clock.monotonic() + LOOKED_UP_MS,
    };
  }
}

function batchesOf(
  { place, before, first }: Lookup,
  found: FoundEntries,
): Omit<FoundBatches, 'missing'> {
  const earlier = first === 0 ? NO_BATCHES : (before?.batches ?? NO_BATCHES);
  const added = batchesIn(found, place, first);
  const batches = added.length === 0 ? earlier : [...earlier, ...added];
  if (before === undefined || !isSameBatches(before.batches, batches)) {
    return { batches, isSame: false };
  }
  return { batches: before.batches, isSame: true };
}
