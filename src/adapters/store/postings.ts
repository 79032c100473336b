import { KnownPlaces, type SpaceLists } from './known-places.ts';
import {
  NO_PLACES,
  type PassageOfRecord,
  type Places,
  type RecallSource,
  type Space,
} from './recall-source.ts';
import type { Steps } from './steps.ts';

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
