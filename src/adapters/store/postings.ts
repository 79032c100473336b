import type { Places, RecallSource, Space } from './recall-source.ts';
import type { Steps } from './steps.ts';

/** Where a term stands in one space: how many passages hold it, and which. */

/**
 * Index entries that one question may visit; 6,000 take about 1 ms. Frequent words say least, so
 * the rarest come first and the rest is left out.
 */
export const POSTINGS_MAX = 6000;
/** Word counts that are remembered; a term is about 10 bytes. */
const FREQUENCIES_MAX = 20_000;
/**
 * A count below this is not remembered: the passages themselves are read, and are loaded already
 * when the term is chosen. Also, a word said a moment ago must be found.
 */
const REMEMBERED_MIN = 256;
/** Until a space has grown by this share, its remembered word counts are near enough. */
const GROWTH_MAX = 0.1;

export class Postings {
  readonly #source: RecallSource;
  #frequencies = new Map<string, number>();
  /** Passages of each space when its counts were taken. */
  readonly #counted = new Map<number, number>();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /** For one recall: what it reads once, it need not read again. */
  in(space: Space): SpacePostings {
    this.#forgetOldCounts(space);
    return new SpacePostings(this.#source, space, this);
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
  readonly #frequencies = new Map<string, number>();
  readonly #places = new Map<string, Places>();

  constructor(source: RecallSource, space: Space, all: Postings) {
    this.#source = source;
    this.space = space;
    this.#all = all;
  }

  /** Looks the terms up, all at once. */
  *count(terms: readonly string[]): Steps<void> {
    const unknown: string[] = [];
    for (const term of terms) {
      const frequency = this.#all.remembered(this.space, term);
      if (frequency === undefined) unknown.push(term);
      else this.#frequencies.set(term, frequency);
    }
    if (unknown.length === 0) return;
    const counts = yield* this.#source.countTerms(this.space, unknown, REMEMBERED_MIN);
    for (const [key, { found, places }] of counts.entries()) {
      const term = unknown[key] ?? '';
      if (found < REMEMBERED_MIN) {
        this.#frequencies.set(term, found);
        this.#places.set(term, places);
      } else yield* this.#countMany(term);
    }
  }

  /** Passages that hold it, as far as they are worth counting; 0 when it was not looked up. */
  frequency(term: string): number {
    return this.#frequencies.get(term) ?? 0;
  }

  /** By the term's place: in the newest `newest` places of the space. */
  *places(terms: readonly string[], newest: number): Steps<readonly Places[]> {
    const from = Math.max(0, this.space.next - newest);
    const unknown = terms.filter((term) => from > 0 || !this.#places.has(term));
    const read =
      unknown.length === 0 ? [] : yield* this.#source.placesOf(this.space, unknown, from);
    const found = new Map(unknown.map((term, place) => [term, read[place] ?? '']));
    return terms.map((term) => found.get(term) ?? this.#places.get(term) ?? '');
  }

  // Above the budget a count makes no difference: the term is left out.
  *#countMany(term: string): Steps<void> {
    const frequency = yield* this.#source.countTerm(this.space, term, POSTINGS_MAX + 1);
    this.#frequencies.set(term, frequency);
    this.#all.remember(this.space, term, frequency);
  }
}
