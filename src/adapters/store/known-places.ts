import { groupBy } from '../../core/bytes/group-by.ts';
import type { PassageOfRecord, Places, RecallSource, Space } from './recall-source.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';
import type { Steps } from './steps.ts';

/**
 * The lists of places that recalls have read: the prompts of a project hold the same words again and
 * again. A passage gets a number that no passage had before, so a list stays right as long as nothing is
 * deleted and the terms of the new passages are added to it.
 */

/** Numbers of places in all lists: 4 bytes each, and up to twice as many while lists grow. */
const PLACES_MAX = 250_000;
/** A list costs as much as so many numbers more. */
const LIST_PLACES = 40;
/** New passages that are worth reading; after more of them each list is read again. */
const NEW_PASSAGES_MAX = 256;

export class KnownPlaces {
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
export class SpaceLists {
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
