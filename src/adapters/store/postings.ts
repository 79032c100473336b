import type { Database } from './database.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';

/**
 * Where a term stands in one space: how many passages hold it, and which. Every query is bounded by
 * a range of ids, so that neither a passage nor a word count of another space can come in.
 */

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

export interface Space {
  readonly id: number;
  readonly name: string;
  readonly passages: number;
  readonly terms: number;
  readonly next: number;
}

/** Numbers of passages, counted from the first of the space, as a list: "3,17,256". */
export type Places = string;

export class Postings {
  readonly #database: Database;
  #frequencies = new Map<string, number>();
  /** Passages of each space when its counts were taken. */
  readonly #counted = new Map<number, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** For one recall: what it reads once, it need not read again. */
  in(space: Space): SpacePostings {
    this.#forgetOldCounts(space);
    return new SpacePostings(this.#database, space, this);
  }

  remembered(space: Space, term: string): number | undefined {
    return this.#frequencies.get(`${space.id} ${term}`);
  }

  remember(space: Space, term: string, frequency: number): void {
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
  readonly #database: Database;
  readonly #all: Postings;
  readonly #frequencies = new Map<string, number>();
  readonly #places = new Map<string, Places>();

  constructor(database: Database, space: Space, all: Postings) {
    this.#database = database;
    this.space = space;
    this.#all = all;
  }

  /** Looks the terms up, all in one query: called one by one, half of the time goes into calling. */
  count(terms: readonly string[]): void {
    const unknown: string[] = [];
    for (const term of terms) {
      const frequency = this.#all.remembered(this.space, term);
      if (frequency === undefined) unknown.push(term);
      else this.#frequencies.set(term, frequency);
    }
    if (unknown.length === 0) return;
    const { first, last } = rangeOf(this.space);
    const rows = this.#database.all<FewRow>(FEW, first, last, JSON.stringify(unknown.map(quoted)));
    for (const { key, few } of rows) {
      const term = unknown[key] ?? '';
      const colon = few.indexOf(':');
      const found = Number(few.slice(0, colon));
      if (found < REMEMBERED_MIN) {
        this.#frequencies.set(term, found);
        this.#places.set(term, few.slice(colon + 1));
      } else this.#countMany(term);
    }
  }

  /** Passages that hold it, as far as they are worth counting; 0 when it was not looked up. */
  frequency(term: string): number {
    return this.#frequencies.get(term) ?? 0;
  }

  /** In the newest `newest` places of the space. */
  places(term: string, newest: number): Places {
    const { first, last } = rangeOf(this.space);
    const from = Math.max(first, last - newest);
    const known = from === first ? this.#places.get(term) : undefined;
    if (known !== undefined) return known;
    const row = this.#database.get<{ places: string }>(PLACES, first, quoted(term), from, last);
    return row?.places ?? '';
  }

  #countMany(term: string): void {
    const { first, last } = rangeOf(this.space);
    const row = this.#database.get<{ found: number }>(COUNT, quoted(term), first, last);
    const frequency = row?.found ?? 0;
    this.#frequencies.set(term, frequency);
    this.#all.remember(this.space, term, frequency);
  }
}

interface FewRow {
  readonly key: number;
  /** How many, a colon, and where. */
  readonly few: string;
}

// A number above 2^31 may be bound as a real, and then the text would say "12.0".
// As one text: 10,000 rows cost 10 ms one by one, 1 ms together.
const PLACES_TEXT = "coalesce(group_concat(rowid - CAST(?1 AS INTEGER)), '')";

const FEW = `SELECT e.key, (SELECT count(*) || ':' || ${PLACES_TEXT} FROM
    (SELECT rowid FROM passage_terms WHERE passage_terms MATCH e.value
      AND rowid BETWEEN ?1 AND ?2 LIMIT ${REMEMBERED_MIN})) AS few
  FROM json_each(?3) e`;

// Above the budget a count makes no difference: the term is left out.
const COUNT = `SELECT count(*) AS found FROM (SELECT rowid FROM passage_terms
  WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ? LIMIT ${POSTINGS_MAX + 1})`;

const PLACES = `SELECT ${PLACES_TEXT} AS places FROM passage_terms
  WHERE passage_terms MATCH ?2 AND rowid BETWEEN ?3 AND ?4`;

export function rangeOf(space: Space): { first: number; last: number } {
  const first = space.id * PASSAGES_PER_SPACE;
  return { first, last: first + space.next };
}

// Terms hold word characters only, so the quotes cannot be closed from inside.
function quoted(term: string): string {
  return `"${term}"`;
}
