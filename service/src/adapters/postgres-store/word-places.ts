import { POSTINGS_MAX } from '../../../../src/adapters/store/postings.ts';
import {
  NO_PLACES,
  type Places,
  placesFrom,
  type Space,
  type TermCount,
} from '../../../../src/adapters/store/recall-source.ts';
import type { Rows } from './rows.ts';
import { RECALL } from './statements/recall.ts';
import type { TenantTermKeys } from './term-keys.ts';
import type { WordCount } from './word-counts.ts';

interface CountRow {
  readonly place: number;
  readonly known: number | null;
  readonly found: number;
  readonly places: string;
}

/** A search ignores a word in more passages than this, so its places are not needed. */
const COUNTED_MAX = POSTINGS_MAX + 1;

/**
 * In how many passages the words of one recall are, and in which. One statement reads both, since the
 * index is the same: the words that are chosen in the end need no second look.
 */
export class WordPlaces {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #keys: TenantTermKeys;
  /** Counts of this recall that the database did not know yet. */
  readonly #new: WordCount[];
  /** By space and term: in how many passages a frequent word is. */
  readonly #many = new Map<string, number>();
  readonly #places = new Map<string, Places>();

  constructor(
    rows: Rows,
    tenant: string,
    { keys, counted }: { readonly keys: TenantTermKeys; readonly counted: WordCount[] },
  ) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#keys = keys;
    this.#new = counted;
  }

  async count(space: Space, terms: readonly string[], most: number): Promise<TermCount[]> {
    const { id, passages } = space;
    const keys = this.#keys.keysOf(id, terms);
    const rows = await this.#rows.all<CountRow>(
      RECALL.countTerms,
      this.#tenant,
      id,
      keys,
      COUNTED_MAX,
      passages,
    );
    const counts = terms.map((): TermCount => ({ found: 0, places: NO_PLACES }));
    for (const { place, known, found, places: list } of rows) {
      const places = placesFrom(list);
      const count = known ?? found;
      const name = nameOf(space, terms[place - 1] ?? '');
      this.#many.set(name, count);
      if (places.length > 0) this.#places.set(name, places);
      if (known === null && count >= most) {
        this.#new.push({ space: id, key: keys[place - 1] ?? '', count, passages });
      }
      counts[place - 1] =
        count < most ? { found: count, places } : { found: most, places: NO_PLACES };
    }
    return counts;
  }

  /** 0 for a term that was not counted. */
  counted(space: Space, term: string): number {
    return this.#many.get(nameOf(space, term)) ?? 0;
  }

  /** The places from `from` on. */
  async places(space: Space, terms: readonly string[], from: number): Promise<Places[]> {
    const known = terms.map((term) =>
      from === 0 ? this.#places.get(nameOf(space, term)) : undefined,
    );
    const unknown = terms.filter((_, place) => known[place] === undefined);
    const read = new Map<string, Places>();
    if (unknown.length > 0) {
      const rows = await this.#rows.all<{ place: number; places: string }>(
        RECALL.placesOf,
        this.#tenant,
        space.id,
        this.#keys.keysOf(space.id, unknown),
        from,
      );
      for (const { place, places } of rows) read.set(unknown[place - 1] ?? '', placesFrom(places));
    }
    return terms.map((term, place) => known[place] ?? read.get(term) ?? NO_PLACES);
  }
}

function nameOf({ id }: Space, term: string): string {
  return `${id} ${term}`;
}
