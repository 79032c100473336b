import {
  NO_PLACES,
  type PassageOfRecord,
  type Places,
  type RecallSource,
  type Space,
} from './recall-source.ts';
import type { Steps } from './steps.ts';
import { groupBy } from '../../core/bytes/batches.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';

/** Finds and counts the passages of a space that contain a term. Their list is called the postings of the term. */

/** Bound on the index entries that a question may read, in each space: 6,000 take about 1 ms. */
export const POSTINGS_MAX = 6000;
const COUNT_MAX = POSTINGS_MAX + 1;
/** Bound on cached counts of terms. */
const FREQUENCIES_MAX = 20_000;
/**
 * Smallest count that is cached. The passages of a rarer term are read instead: the recall needs them anyway, and a
 * passage that was stored just now is among them.
 */
const REMEMBERED_MIN = 256;
/** Share by which the size of a space may change until all cached counts are dropped as too inaccurate. */
const GROWTH_MAX = 0.1;

export class Postings {
  readonly #source: RecallSource;
  #frequencies = new Map<string, number>();
  /**
   * The number of passages of each space at its first recall; set again at each recall at which that number has changed
   * by more than GROWTH_MAX.
   */
  readonly #counted = new Map<number, number>();
  readonly #places: KnownPlaces;
  /** False if the source has no generation; see RecallSource. */
  #mayCache = false;

  constructor(source: RecallSource) {
    this.#source = source;
    this.#places = new KnownPlaces(source);
  }

  /** Returns the postings of a space for one recall. */
  *in(space: Space): Steps<SpacePostings> {
    const generation = this.#source.generation();
    this.#mayCache = generation !== undefined;
    this.#forgetOldCounts(space);
    return new SpacePostings(this.#source, space, {
      all: this,
      lists: yield* this.#places.in(space, generation),
    });
  }

  remembered(space: Space, term: string): number | undefined {
    return this.#frequencies.get(`${space.id} ${term}`);
  }

  remember(space: Space, term: string, frequency: number): void {
    if (!this.#mayCache) return;
    if (this.#frequencies.size >= FREQUENCIES_MAX) this.#frequencies.clear();
    this.#frequencies.set(`${space.id} ${term}`, frequency);
  }

  #forgetOldCounts(space: Space): void {
    const counted = this.#counted.get(space.id);
    if (counted !== undefined && Math.abs(space.passages - counted) <= counted * GROWTH_MAX) return;
    if (counted !== undefined) this.#frequencies = new Map();
    this.#counted.set(space.id, space.passages);
  }
}

export class SpacePostings {
  readonly space: Space;
  readonly #source: RecallSource;
  readonly #all: Postings;
  readonly #lists: SpaceLists;
  readonly #frequencies = new Map<string, number>();

  constructor(
    source: RecallSource,
    space: Space,
    { all, lists }: { readonly all: Postings; readonly lists: SpaceLists },
  ) {
    this.#source = source;
    this.space = space;
    this.#all = all;
    this.#lists = lists;
  }

  /** Counts the passages with each of these terms, so that frequency() knows them. */
  *count(terms: readonly string[]): Steps<void> {
    const unknown: string[] = [];
    for (const term of terms) {
      const frequency = this.#all.remembered(this.space, term);
      const places = this.#lists.of(term);
      if (frequency !== undefined) this.#frequencies.set(term, frequency);
      else if (places !== undefined) this.#setFrequency(term, places.length);
      else unknown.push(term);
    }
    if (unknown.length === 0) return;
    const counts = yield* this.#source.countTerms(this.space, unknown, REMEMBERED_MIN);
    for (const [key, { found, places }] of counts.entries()) {
      const term = unknown[key] ?? '';
      if (found < REMEMBERED_MIN) {
        this.#frequencies.set(term, found);
        this.#lists.set(term, places);
      } else {
        // A term with more than POSTINGS_MAX passages is too frequent to be searched, so count no further.
        this.#setFrequency(term, yield* this.#source.countTerm(this.space, term, COUNT_MAX));
      }
    }
  }

  /** Returns how many passages have a term, at most COUNT_MAX; 0 if count() was not called with it. */
  frequency(term: string): number {
    return this.#frequencies.get(term) ?? 0;
  }

  *passagesOf(digests: readonly string[]): Steps<readonly PassageOfRecord[]> {
    const unknown = digests.filter((digest) => this.#lists.held(digest) === undefined);
    if (unknown.length > 0) {
      this.#lists.noteHeld(unknown, yield* this.#source.passagesOf(this.space, unknown));
    }
    return digests.flatMap((digest) => this.#lists.held(digest) ?? []);
  }

  /** Returns for each term, in order, the numbers of its passages among the newest `newest` ones of the space. */
  *places(terms: readonly string[], newest: number): Steps<readonly Places[]> {
    const from = Math.max(0, this.space.next - newest);
    if (from > 0) return yield* this.#source.placesOf(this.space, terms, from);
    const unknown = terms.filter((term) => this.#lists.of(term) === undefined);
    const read = unknown.length === 0 ? [] : yield* this.#source.placesOf(this.space, unknown, 0);
    for (const [place, term] of unknown.entries()) this.#lists.set(term, read[place] ?? NO_PLACES);
    return terms.map((term) => this.#lists.of(term) ?? NO_PLACES);
  }

  #setFrequency(term: string, count: number): void {
    const frequency = Math.min(count, COUNT_MAX);
    this.#frequencies.set(term, frequency);
    if (frequency >= REMEMBERED_MIN) this.#all.remember(this.space, term, frequency);
  }
}

/** Bound on cached passage numbers, of 4 bytes each. A list that grows reserves up to twice its bytes. */
const PLACES_MAX = 250_000;
/**
 * What counts towards PLACES_MAX, besides the cached numbers, for each cached list, each cached digest, and each cached
 * passage of a record: as much as 40 numbers of 4 bytes.
 */
const LIST_PLACES = 40;
/** Bound on new passages that are added to cached lists. If there are more, the lists are dropped. */
const NEW_PASSAGES_MAX = 256;

/**
 * Caches the lists of passages that recalls have read, because a project's prompts repeat the same words. Numbers of
 * passages are never reused. So a list is correct as long as nothing is deleted and every new passage is added to it.
 */
class KnownPlaces {
  readonly #source: RecallSource;
  #generation: string | undefined;
  readonly #spaces = new Map<number, SpaceLists>();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /**
   * Returns the cached lists of a space, after adding the passages that were stored since the last call. Returns empty
   * lists if nothing valid is cached, or if more than NEW_PASSAGES_MAX passages are new.
   */
  *in(space: Space, generation: string | undefined): Steps<SpaceLists> {
    if (generation === undefined) return new SpaceLists(space.next);
    if (generation !== this.#generation || this.#isFull()) this.#spaces.clear();
    this.#generation = generation;
    const known = this.#spaces.get(space.id);
    const count = space.next - (known?.next ?? 0);
    if (known === undefined || count < 0 || count > NEW_PASSAGES_MAX) {
      const lists = new SpaceLists(space.next);
      this.#spaces.set(space.id, lists);
      return lists;
    }
    if (count > 0) yield* this.#readNew(space, known);
    return known;
  }

  *#readNew(space: Space, lists: SpaceLists): Steps<void> {
    const first = space.id * PASSAGES_PER_SPACE;
    const ids = Array.from({ length: space.next - lists.next }, (_, at) => first + lists.next + at);
    const passages = yield* this.#source.passages(ids);
    for (const { id, terms } of passages) lists.addPassage(id - first, terms);
    lists.grownTo(space.next);
  }

  #isFull(): boolean {
    let count = 0;
    for (const { size } of this.#spaces.values()) count += size;
    return count > PLACES_MAX;
  }
}

/** The cached lists of one space: for a term the passages that contain it, and for a digest the record's passages. */
class SpaceLists {
  #next: number;
  readonly #lists = new Map<string, PlaceList>();
  /** Passages by the digest of their record. Each recall of a long conversation asks for hundreds of records. */
  readonly #held = new Map<string, readonly PassageOfRecord[]>();
  #size = 0;

  constructor(next: number) {
    this.#next = next;
  }

  /** All passages with a lower number are in the lists; those from this number on must still be added. */
  get next(): number {
    return this.#next;
  }

  /**
   * Records that all passages before `next` are in the lists. It drops digests without passages, because a new passage
   * may belong to one of them.
   */
  grownTo(next: number): void {
    this.#next = next;
    for (const [digest, passages] of this.#held) {
      if (passages.length === 0) this.#held.delete(digest);
    }
  }

  /** Returns the passages of the record with this digest; undefined if they were not read yet. */
  held(digest: string): readonly PassageOfRecord[] | undefined {
    return this.#held.get(digest);
  }

  noteHeld(digests: readonly string[], found: readonly PassageOfRecord[]): void {
    const passages = groupBy(found, ({ digest }) => digest);
    for (const digest of digests) this.#held.set(digest, passages.get(digest) ?? []);
    this.#size += (digests.length + found.length) * LIST_PLACES;
  }

  /** The size of everything that is cached, as PLACES_MAX counts it. */
  get size(): number {
    return this.#size;
  }

  of(term: string): Places | undefined {
    return this.#lists.get(term)?.places;
  }

  set(term: string, places: Places): void {
    this.#lists.set(term, new PlaceList(places));
    this.#size += places.length + LIST_PLACES;
  }

  addPassage(place: number, terms: readonly string[]): void {
    for (const term of new Set(terms)) {
      const list = this.#lists.get(term);
      if (list === undefined) continue;
      list.add(place);
      this.#size += 1;
    }
  }
}

class PlaceList {
  #numbers: Uint32Array;
  #count: number;

  constructor(places: Places) {
    this.#numbers = places;
    this.#count = places.length;
  }

  get places(): Places {
    return this.#numbers.subarray(0, this.#count);
  }

  add(place: number): void {
    if (this.#count === this.#numbers.length) {
      const longer = new Uint32Array(2 * this.#count + 1);
      longer.set(this.#numbers);
      this.#numbers = longer;
    }
    this.#numbers[this.#count] = place;
    this.#count += 1;
  }
}
