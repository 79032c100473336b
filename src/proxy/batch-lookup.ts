import type { AddressOf, LeftOut } from '../core/ledger/entries.ts';
import {
  batchesIn,
  elisionAddresses,
  type ElisionPlace,
  isSameBatches,
  newestAnchor,
} from '../core/shortening/elisions.ts';
import type { FoundEntries, LedgerMiss } from '../core/ledger/found-entries.ts';
import type { Clock } from '../ports/clock.ts';
import type { Ledger } from '../ports/ledger.ts';
import type { ConversationState, KnownBatches } from './conversation-state.ts';

/**
 * Finds the batches of a conversation in the ledger. Those of the items that an earlier request asked
 * for are known by heart, so the ledger is asked for new items alone, and for those that a client has
 * rewritten since.
 */

/** So long the ledger itself believes that there is no entry: another process may write one. */
const LOOKED_UP_MS = 60_000;

const NO_BATCHES: readonly LeftOut[] = [];

/** A client rewrites the last message, or takes a step back; what was said before stays. */
const REMEMBERED_ITEMS = 4;

export interface FoundBatches {
  /** The very list of the last request where there is no new one. */
  readonly batches: readonly LeftOut[];
  readonly isSame: boolean;
  /**
   * A batch was made at the newest item, so this request was sent before. It leaves out the same again,
   * and no more: the ledger keeps the first batch of an item, so the next request would not know.
   */
  readonly isSentAgain: boolean;
  readonly missing: LedgerMiss | undefined;
}

type BatchMark = AddressOf<'batch-mark'>;

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

  get recorded(): number {
    return this.#recorded;
  }

  /** To be called when this process records a batch, of whatever conversation. */
  noteRecorded(): void {
    this.#recorded += 1;
  }

  /**
   * A request of the conversation has asked for this mark lately, and there was none: conversations that
   * begin so have no batches.
   */
  lacks(mark: BatchMark, { unmarked }: ConversationState): boolean {
    return (
      !this.#ledger.isShared &&
      unmarked !== undefined &&
      unmarked.recorded === this.#recorded &&
      unmarked.generation === this.#ledger.generation() &&
      unmarked.elision === mark.elision &&
      unmarked.fingerprint === mark.fingerprint &&
      unmarked.until > this.#clock.monotonic()
    );
  }

  /** The ledger was asked for this mark when `recorded` was what it says, and had none. */
  noteLacks({ elision, fingerprint }: BatchMark, recorded: number, state: ConversationState): void {
    const generation = this.#ledger.generation();
    const until = this.#clock.monotonic() + LOOKED_UP_MS;
    state.unmarked = { elision, fingerprint, recorded, generation, until };
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
    const { batches, places, isSame } = batchesOf(lookup, found);
    const known = { ...this.#lookedUp(lookup), recorded, batches, places };
    const isSentAgain = places.length > 0 && places.at(-1) === newestAnchor(place.view);
    return { batches, isSame, isSentAgain, missing: found.missing, known };
  }

  /** Where nothing has changed since, the items before it were looked up by an earlier request. */
  #firstNewItem({ view }: ElisionPlace, before: KnownBatches | undefined): number {
    // Another node may have recorded a batch at any of them.
    if (this.#ledger.isShared) return 0;
    if (before === undefined || before.recorded !== this.#recorded) return 0;
    if (before.generation !== this.#ledger.generation()) return 0;
    if (before.until < this.#clock.monotonic()) return 0;
    const same = before.asked.findLast(
      ({ at, fingerprint }) => view.items[at]?.fingerprint === fingerprint,
    );
    return same === undefined ? 0 : same.at + 1;
  }

  #lookedUp({ place: { view }, before, first }: Lookup) {
    const start = Math.max(0, view.items.length - REMEMBERED_ITEMS);
    const isFurther = first > 0 && before !== undefined;
    return {
      asked: view.items
        .slice(start)
        .map(({ fingerprint }, at) => ({ at: start + at, fingerprint })),
      generation: this.#ledger.generation(),
      until: isFurther ? before.until : this.#clock.monotonic() + LOOKED_UP_MS,
    };
  }
}

function batchesOf(
  { place, before, first }: Lookup,
  found: FoundEntries,
): Pick<FoundBatches, 'batches' | 'isSame'> & Pick<KnownBatches, 'places'> {
  const { batches: known = NO_BATCHES, places: knownPlaces = [] } = before ?? {};
  // They are in the order of their items: the later ones are of what was rewritten.
  const count = knownPlaces.filter((at) => at < first).length;
  const added = batchesIn(found, place, first);
  if (before !== undefined && added.length === 0 && count === known.length) {
    return { batches: known, places: knownPlaces, isSame: true };
  }
  const batches = [...known.slice(0, count), ...added.map(({ leftOut }) => leftOut)];
  const places = [...knownPlaces.slice(0, count), ...added.map(({ at }) => at)];
  if (before === undefined || !isSameBatches(before.batches, batches)) {
    return { batches, places, isSame: false };
  }
  return { batches: before.batches, places, isSame: true };
}
