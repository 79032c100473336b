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

/** The passages of one space that contain a term, and their number. */

/**
 * Index entries that one question may visit; 6,000 take about 1 ms. Frequent words say least, so
 * the rarest come first and the rest is left out.
 */
export const POSTINGS_MAX = 6000;
const COUNT_MAX = POSTINGS_MAX + 1;
/** Word counts that are remembered; a term is about 10 bytes. */
const FREQUENCIES_MAX = 20_000;
/**
 * A count below this is not remembered: the places themselves are read, and are there already when the
 * term is chosen. Also, a word said a moment ago must be found.
 */
const REMEMBERED_MIN = 256;
/** Until a space has grown by this share, its remembered word counts are near enough. */
const GROWTH_MAX = 0.1;

export class Postings {
  readonly #source: RecallSource;
  #frequencies = new Map<string, number>();
  /** Passages of each space when its counts were taken. */
  readonly #counted = new Map<number, number>();
  readonly #places: KnownPlaces;

  constructor(source: RecallSource) {
    this.#source = source;
    this.#places = new KnownPlaces(source);
  }

  /** For one recall. */
  *in(space: Space): Steps<SpacePostings> {
    this.#forgetOldCounts(space);
    return new SpacePostings(this.#source, space, {
      all: this,
      lists: yield* this.#places.in(space),
    });
  }

  remembered(space: Space, term: string): number | undefined {
    return this.#frequencies.get(`${space.id} ${term}`);
  }

  remember(space: Space, term: string, frequency: number): void {
    if (this.#source.generation() === undefined) return;
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

  /** Looks the terms up, all at once. */
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
      } else yield* this.#countMany(term);
    }
  }

  /** Passages that hold it, as far as they are worth counting; 0 when it was not looked up. */
  frequency(term: string): number {
    return this.#frequencies.get(term) ?? 0;
  }

  /** The passages of the records with these digests. */
  *passagesOf(digests: readonly string[]): Steps<readonly PassageOfRecord[]> {
    const unknown = digests.filter((digest) => this.#lists.held(digest) === undefined);
    if (unknown.length > 0) {
      this.#lists.noteHeld(unknown, yield* this.#source.passagesOf(this.space, unknown));
    }
    return digests.flatMap((digest) => this.#lists.held(digest) ?? []);
  }

  /** By the term's place: in the newest `newest` places of the space. */
  *places(terms: readonly string[], newest: number): Steps<readonly Places[]> {
    const from = Math.max(0, this.space.next - newest);
    if (from > 0) return yield* this.#source.placesOf(this.space, terms, from);
    const unknown = terms.filter((term) => this.#lists.of(term) === undefined);
    const read = unknown.length === 0 ? [] : yield* this.#source.placesOf(this.space, unknown, 0);
    for (const [place, term] of unknown.entries()) this.#lists.set(term, read[place] ?? NO_PLACES);
    return terms.map((term) => this.#lists.of(term) ?? NO_PLACES);
  }

  // Above the budget a count makes no difference: the term is left out.
  *#countMany(term: string): Steps<void> {
    this.#setFrequency(term, yield* this.#source.countTerm(this.space, term, COUNT_MAX));
  }

  #setFrequency(term: string, count: number): void {
    const frequency = Math.min(count, COUNT_MAX);
    this.#frequencies.set(term, frequency);
    if (frequency >= REMEMBERED_MIN) this.#all.remember(this.space, term, frequency);
  }
}

/** Numbers of places in all lists: 4 bytes each, and up to twice as many while lists grow. */
const PLACES_MAX = 250_000;
/** A list costs as much as so many numbers more. */
const LIST_PLACES = 40;
/** New passages that are worth reading; after more of them each list is read again. */
const NEW_PASSAGES_MAX = 256;

/**
 * The lists of places that recalls have read: the prompts of a project hold the same words again and again. A passage
 * gets a number that no passage had before, so a list stays right as long as nothing is deleted and the terms of the
 * new passages are added to it.
 */
class KnownPlaces {
  readonly #source: RecallSource;
  #generation: string | undefined;
  readonly #spaces = new Map<number, SpaceLists>();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /** The lists of this space, which hold all of its passages. */
  *in(space: Space): Steps<SpaceLists> {
    const generation = this.#source.generation();
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

/** By term: all places of one space that hold it. And by digest: the passages of the record. */
class SpaceLists {
  #next: number;
  readonly #lists = new Map<string, PlaceList>();
  /** The request of a long conversation holds hundreds of records, and each recall asks for all of them. */
  readonly #held = new Map<string, readonly PassageOfRecord[]>();
  #size = 0;

  constructor(next: number) {
    this.#next = next;
  }

  /** The number that the space's next passage gets. */
  get next(): number {
    return this.#next;
  }

  /** All passages before this one were added. */
  grownTo(next: number): void {
    this.#next = next;
    for (const [digest, passages] of this.#held) {
      if (passages.length === 0) this.#held.delete(digest);
    }
  }

  /** The passages of the record with this digest; undefined if they were not read yet. */
  held(digest: string): readonly PassageOfRecord[] | undefined {
    return this.#held.get(digest);
  }

  noteHeld(digests: readonly string[], found: readonly PassageOfRecord[]): void {
    const passages = groupBy(found, ({ digest }) => digest);
    for (const digest of digests) this.#held.set(digest, passages.get(digest) ?? []);
    this.#size += (digests.length + found.length) * LIST_PLACES;
  }

  /** How much it holds, in numbers of places. */
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
