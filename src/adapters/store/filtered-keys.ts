import type { Database } from './database.ts';
import type { KeyFilter } from './key-filter.ts';

/** Keys that are read at once for the filter: 3 ms, in which no question is answered. */
export const FILTER_ROWS = 5000;

/** Some keys of a table in its own order, FILTER_ROWS at most, and the place of the last one. */
interface KeyPage<Place> {
  readonly keys: readonly string[];
  readonly last: Place | undefined;
}

/** Keeps the filter of a table's keys whole, for the thread that asks it. */
export class FilteredKeys<Place> {
  readonly #database: Pick<Database, 'foreignGeneration'>;
  readonly #filter: KeyFilter | undefined;
  readonly #read: (after: Place | undefined) => KeyPage<Place>;
  /** How far the filter has the keys of the table as it was in this generation. */
  #filtered: Filtered<Place> = { generation: '', after: undefined, isWhole: false };

  /** `read`: the keys behind a place, or the first ones. */
  constructor(
    database: Pick<Database, 'foreignGeneration'>,
    filter: KeyFilter | undefined,
    read: (after: Place | undefined) => KeyPage<Place>,
  ) {
    this.#database = database;
    this.#filter = filter;
    this.#read = read;
  }

  /** To be called before the key is written. */
  add(key: string): void {
    this.#filter?.add(key);
  }

  isWhole(): boolean {
    const { generation, isWhole } = this.#filtered;
    return isWhole && generation === this.#database.foreignGeneration();
  }

  /** Reads some of the keys that the filter does not have. False when there are no more. */
  fillSome(): boolean {
    if (this.#filter === undefined || this.isWhole()) return false;
    // Asked first: what another process adds from here on changes it.
    const generation = this.#database.foreignGeneration();
    const isSame = generation === this.#filtered.generation;
    const after = isSame ? this.#filtered.after : undefined;
    const { keys, last = after } = this.#read(after);
    for (const key of keys) this.#filter.add(key);
    const isWhole = keys.length < FILTER_ROWS;
    this.#filtered = { generation, after: last, isWhole };
    return !isWhole;
  }
}

interface Filtered<Place> {
  readonly generation: string;
  readonly after: Place | undefined;
  readonly isWhole: boolean;
}
