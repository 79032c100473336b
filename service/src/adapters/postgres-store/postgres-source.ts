import { wordNumber } from '../../../../src/core/recall/exchange-ranking.ts';
import type { Span } from '../../../../src/core/recall/dates.ts';
import type { RecalledPassage } from '../../../../src/ports/memory.ts';
import {
  type ExchangePart,
  type ExchangeParts,
  type ExchangePlace,
  type HolderLimits,
  type Passage,
  type PassageOfRecord,
  type Places,
  type RecallSource,
  type SaidText,
  type Session,
  type Space,
  type SpokenText,
  type TermCount,
  type Window,
  NO_PLACES,
  placesFrom,
} from '../../../../src/adapters/store/recall-source.ts';
import { done, type Steps, waitFor } from '../../../../src/adapters/store/steps.ts';
import type { Rows, SqlValue } from '../../ports/rows.ts';
import { RECALL } from './statements/recall.ts';
import type { TenantTermKeys } from './term-keys.ts';
import { columnsOf } from './wire-values.ts';
import { POSTINGS_MAX } from '../../../../src/adapters/store/postings.ts';
import { textsOf } from '../../core/objects.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { factsOf, type ItemRow, type SaidItem } from '../memory/row-shapes.ts';
import { PASSAGES_PER_SPACE } from '../../../../src/adapters/store/schema.ts';
import type { Connections } from './connections.ts';

/**
 * Reads from PostgreSQL for one recall, in one transaction. A round trip costs more than the rows. So some statements
 * also fetch what the search will ask for next, and a later method of this class returns that without a statement.
 */

/** A requested passage, or one near it. `place`: the number of the requested passage in the question, from 1. */
interface WindowRow {
  readonly place: number;
  readonly space_id: number;
  readonly n: number;
  readonly text_n: number;
  readonly position: number;
  readonly chars: number;
  /** The keys of the passage's words; null, like `at`, if another row of the result has them. */
  readonly keys: Buffer | null;
  readonly at: number | null;
}

/** A passage of an exchange. `place`: the same number for all passages of the exchange. */
interface ExchangeRow {
  readonly place: number;
  readonly space_id: number;
  readonly conversation_id: number;
  readonly exchange: number;
  readonly newest: number;
  readonly at: number | null;
  readonly branch: string | null;
  readonly part: number;
  readonly text_n: number;
  readonly chars: number;
  readonly keys: Buffer;
}

export class PostgresSource implements RecallSource {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #keys: TenantTermKeys;
  /**
   * Collects the counts of frequent words of which `word_counts` has no valid count. The caller stores them after the
   * answer.
   */
  readonly #counted: WordCount[];
  /** The number of passages with a word, by space and word. Counting stops at COUNTED_MAX. */
  readonly #many = new Map<string, number>();
  readonly #places = new Map<string, Places>();
  /** The texts of each record that was read, by the numbers of the space and of the record. */
  readonly #records = new Map<string, readonly { readonly text: string }[]>();
  /** The items of all texts that were read, by digest and space. */
  readonly #items = new Map<string, SaidItem>();
  readonly #passages = new Map<number, Passage>();
  /** The time of each text, by its id. */
  readonly #times = new Map<number, number>();
  readonly #exchanges = new Map<string, ExchangeParts>();
  /** The spaces that readSpaces() has asked for, by the JSON of the list of their names. */
  readonly #spaces = new Map<string, Promise<Space[]>>();

  constructor(
    rows: Rows,
    tenant: string,
    { keys, counted }: { readonly keys: TenantTermKeys; readonly counted: WordCount[] },
  ) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#keys = keys;
    this.#counted = counted;
  }

  /** Returns no generation, so that the search caches nothing: another node may write and delete at any time. */
  generation(): undefined {
    return undefined;
  }

  expectTerms(terms: () => Iterable<string>): void {
    this.#keys.expect(terms());
  }

  spaces(names: readonly string[]): Steps<readonly Space[]> {
    return waitFor(this.readSpaces(names));
  }

  /** Starts to read spaces, so that spaces() finds them read. */
  readSpaces(names: readonly string[]): Promise<readonly Space[]> {
    const key = JSON.stringify(names);
    const asked = this.#spaces.get(key) ?? this.#all<Space>(RECALL.spaces, names);
    this.#spaces.set(key, asked);
    return asked;
  }

  countTerms(space: Space, terms: readonly string[], most: number): Steps<readonly TermCount[]> {
    return waitFor(this.#count(space, terms, most));
  }

  /**
   * Returns a count that countTerms() has read; 0 for any other word. The search calls countTerms() first, with all
   * words of the question.
   */
  countTerm(space: Space, term: string, most: number): Steps<number> {
    return done(Math.min(this.#many.get(nameOf(space, term)) ?? 0, most));
  }

  placesOf(space: Space, terms: readonly string[], from: number): Steps<readonly Places[]> {
    return waitFor(this.#placesFrom(space, terms, from));
  }

  saidIn({ id }: Space, { from, to }: Span, most: number): Steps<readonly number[]> {
    return this.#idsIn(id, RECALL.saidIn, from, to, most);
  }

  passagesOf({ id }: Space, digests: readonly string[]): Steps<readonly PassageOfRecord[]> {
    const asked = this.#all<PassageRow>(RECALL.passagesOf, id, digests);
    const passageOf = ({ digest, text_n: text, n }: PassageRow): PassageOfRecord => {
      return { digest, record: idOf(id, text), passage: idOf(id, n) };
    };
    return waitFor(asked.then((rows) => rows.map(passageOf)));
  }

  windows(ids: readonly number[], most: number): Steps<readonly Window[]> {
    return ids.length === 0 ? done([]) : waitFor(this.#windows(ids, most));
  }

  /** Returns those of the passages that windows() has read already, and leaves out the others. */
  passages(ids: readonly number[]): Steps<readonly Passage[]> {
    return done(ids.flatMap((id) => this.#passages.get(id) ?? []));
  }

  /** Returns the times that windows() has read already; 0 for a text that it has not read. */
  timesOf(records: readonly number[]): Steps<readonly number[]> {
    return done(records.map((record) => this.#times.get(record) ?? 0));
  }

  texts(ids: readonly number[]): Steps<ReadonlyMap<number, Omit<RecalledPassage, 'score'>>> {
    return waitFor(this.#texts(ids));
  }

  exchangesOf(ids: readonly number[], most: number): Steps<readonly ExchangePlace[]> {
    return ids.length === 0 ? done([]) : waitFor(this.#exchangesOf(ids, most));
  }

  /** Returns those of the exchanges that exchangesOf() has read already, and leaves out the others. */
  readExchanges(places: readonly ExchangePlace[]): Steps<readonly ExchangeParts[]> {
    return done(places.flatMap((place) => this.#exchanges.get(exchangeKey(place)) ?? []));
  }

  readRecords(records: readonly number[]): Steps<readonly SpokenText[]> {
    return records.length === 0 ? done([]) : waitFor(this.#readRecords(records));
  }

  sessions({ id }: Space, most: number, sessionsMost: number): Steps<readonly Session[]> {
    const asked = this.#all<SessionRow>(RECALL.sessions, id, most, sessionsMost);
    const sessionOf = ({ conversation_id: n, ...row }: SessionRow): Session => {
      return { ...row, conversation: idOf(id, n) };
    };
    return waitFor(asked.then((rows) => rows.map(sessionOf)));
  }

  holders(
    space: Space,
    terms: readonly string[],
    limits: HolderLimits,
  ): Steps<readonly (readonly number[])[]> {
    if (terms.length === 0) return done([]);
    return waitFor(this.#holders(space, terms, limits));
  }

  opening(conversation: number, most: number): Steps<readonly number[]> {
    const { space, n } = placeOf(conversation);
    return this.#idsIn(space, RECALL.opening, n, most);
  }

  closing(conversation: number, most: number): Steps<readonly number[]> {
    const { space, n } = placeOf(conversation);
    return this.#idsIn(space, RECALL.closing, n, most);
  }

  saidWith(space: Space, term: string, most: number): Steps<readonly SaidText[]> {
    const keys = this.#keys.keysOf(space.id, [term]);
    const asked = this.#all<SaidRow>(RECALL.saidWith, space.id, keys, most);
    return waitFor(asked.then((rows) => this.#textsOf(rows)));
  }

  /** Returns the item of a passage; undefined if this recall has not read its text. */
  itemOf(passage: Pick<RecalledPassage, 'space' | 'digest'>): SaidItem | undefined {
    return this.#items.get(itemKey(passage));
  }

  /**
   * Counts the passages with each word. The same statement reads which passages these are, so that placesOf() needs no
   * statement for a word that is not frequent.
   */
  async #count(space: Space, terms: readonly string[], most: number): Promise<TermCount[]> {
    const { id, passages } = space;
    const keys = this.#keys.keysOf(id, terms);
    const values = [id, keys, COUNTED_MAX, passages] as const;
    const rows = await this.#all<CountRow>(RECALL.countTerms, ...values);
    const counts = terms.map((): TermCount => ({ found: 0, places: NO_PLACES }));
    for (const { place, known, found, places: list } of rows) {
      const places = placesFrom(list);
      const count = known ?? found;
      const name = nameOf(space, terms[place - 1] ?? '');
      this.#many.set(name, count);
      if (places.length > 0) this.#places.set(name, places);
      if (known === null && count >= most) {
        this.#counted.push({ space: id, key: keys[place - 1] ?? '', count, passages });
      }
      counts[place - 1] =
        count < most ? { found: count, places } : { found: most, places: NO_PLACES };
    }
    return counts;
  }

  /** Reads which passages have these words, from the passage with number `from` on. */
  async #placesFrom(space: Space, terms: readonly string[], from: number): Promise<Places[]> {
    const known = terms.map((term) =>
      from === 0 ? this.#places.get(nameOf(space, term)) : undefined,
    );
    const unknown = terms.filter((_, place) => known[place] === undefined);
    const read = new Map<string, Places>();
    if (unknown.length > 0) {
      const values = [space.id, this.#keys.keysOf(space.id, unknown), from] as const;
      const rows = await this.#all<PlacesRow>(RECALL.placesOf, ...values);
      for (const { place, places } of rows) read.set(unknown[place - 1] ?? '', placesFrom(places));
    }
    return terms.map((term, place) => known[place] ?? read.get(term) ?? NO_PLACES);
  }

  async #windows(ids: readonly number[], most: number): Promise<Window[]> {
    const rows = await this.#all<WindowRow>(RECALL.windows, ...placesOf(ids), most);
    const around = new Map<number, number[]>();
    for (const { place, space_id: space, n, text_n, keys, at, ...row } of rows) {
      const [id, record] = [idOf(space, n), idOf(space, text_n)];
      const window = around.get(place);
      if (window === undefined) around.set(place, [id]);
      else window.push(id);
      if (keys === null) continue;
      const { position, chars } = row;
      const terms = this.#keys.termsOf(space, keys);
      this.#passages.set(id, { id, record, position, chars, terms });
      this.#times.set(record, at ?? 0);
    }
    return [...around].map(([place, said]) => ({ id: ids[place - 1] ?? 0, around: said }));
  }

  async #texts(ids: readonly number[]): Promise<Map<number, Omit<RecalledPassage, 'score'>>> {
    const rows = await this.#all<SaidRow>(RECALL.texts, ...placesOf(ids));
    const texts = this.#textsOf(rows);
    return new Map(
      rows.flatMap(({ space_id, n, start_at, end_at, said_source: source }, at) => {
        const said = texts[at];
        if (said === undefined) return [];
        const text = said.text.slice(start_at, end_at);
        return [[idOf(space_id, n), { ...said, text, ...(source === null ? {} : { source }) }]];
      }),
    );
  }

  #textsOf(rows: readonly SaidRow[]): SaidText[] {
    const texts = this.#addItems(rows);
    return rows.map(({ said_ref: ref, said_digest: digest, space, role, client, at }, place) => ({
      ref,
      digest,
      space,
      role,
      at,
      client,
      text: texts[place] ?? '',
    }));
  }

  async #exchangesOf(ids: readonly number[], most: number): Promise<ExchangePlace[]> {
    const rows = await this.#all<ExchangeRow>(RECALL.exchanges, ...placesOf(ids), most);
    const places = new Map<number, ExchangePlace & { readonly parts: ExchangePart[] }>();
    for (const row of rows) {
      const { space_id: space, exchange, at, branch } = row;
      const [conversation, record] = [idOf(space, row.conversation_id), idOf(space, row.newest)];
      const facts = { conversation, exchange, record, at: at ?? 0 };
      const place = places.get(row.place) ?? { ...facts, parts: [] };
      if (!places.has(row.place)) {
        places.set(row.place, place);
        const { parts } = place;
        this.#exchanges.set(exchangeKey(place), { conversation, exchange, branch, parts });
      }
      place.parts.push(this.#partOf(row));
    }
    return [...places.values()];
  }

  #partOf({ space_id: space, part, text_n, chars, keys }: ExchangeRow): ExchangePart {
    return {
      speaker: part === 3 ? 'answer' : part === 2 ? 'unverified' : 'person',
      record: idOf(space, text_n),
      chars,
      words: this.#keys.termsOf(space, keys).map(wordNumber),
    };
  }

  async #readRecords(records: readonly number[]): Promise<SpokenText[]> {
    const rows = await this.#all<SaidRow>(RECALL.records, ...placesOf(records));
    const texts = this.#addItems(rows);
    return rows.map(({ role, space, at, client, ...row }, place) => {
      const facts = { id: idOf(row.space_id, row.n), ref: row.said_ref, source: row.said_source };
      const said = { text: texts[place] ?? '', lastFrom: row.last_from };
      return { ...facts, ...said, role, space, at, client, root: null, files: null };
    });
  }

  /** Keeps the texts of these rows, so that itemOf() finds them without a query. Returns the whole text of each row. */
  #addItems(rows: readonly SaidRow[]): string[] {
    for (const row of rows) {
      if (row.bytes !== null) this.#records.set(recordKey(row), textsOf(recordOfBytes(row.bytes)));
    }
    return rows.map((row) => {
      const whole = this.#records.get(recordKey(row))?.[row.message]?.text ?? '';
      const key = itemKey({ space: row.space, digest: row.said_digest });
      this.#items.set(key, { facts: factsOf(row), whole });
      return whole;
    });
  }

  async #holders(
    space: Space,
    terms: readonly string[],
    { most, among }: HolderLimits,
  ): Promise<number[][]> {
    const rows = await this.#all<{ place: number; held: string | null }>(
      RECALL.holders,
      space.id,
      this.#keys.keysOf(space.id, terms),
      most,
      space.next - among,
    );
    const holders = terms.map((): number[] => []);
    for (const { place, held } of rows) {
      holders[place - 1] = held?.split(',').map((n) => idOf(space.id, Number(n))) ?? [];
    }
    return holders;
  }

  /** Runs a statement on a space that returns numbers of passages. Returns their ids. */
  #idsIn(space: number, statement: string, ...values: number[]): Steps<readonly number[]> {
    const asked = this.#all<{ n: number }>(statement, space, ...values);
    return waitFor(asked.then((rows) => rows.map(({ n }) => idOf(space, n))));
  }

  #all<Row>(statement: string, ...values: SqlValue[]): Promise<Row[]> {
    return this.#rows.all<Row>(statement, this.#tenant, ...values);
  }
}

function exchangeKey({
  conversation,
  exchange,
}: Pick<ExchangePlace, 'conversation' | 'exchange'>): string {
  return `${conversation} ${exchange}`;
}

type PassageRow = Pick<WindowRow, 'text_n' | 'n'> & { readonly digest: string };
type SessionRow = Omit<Session, 'conversation'> & { readonly conversation_id: number };
type PlacesRow = Pick<CountRow, 'place' | 'places'>;

interface CountRow {
  readonly place: number;
  readonly known: number | null;
  readonly found: number;
  readonly places: string;
}

/**
 * Bound on counting the passages of a word. The search leaves out a more frequent word, or reads only the newest
 * passages if even the rarest word is so frequent. So it needs no exact count of such a word.
 */
const COUNTED_MAX = POSTINGS_MAX + 1;

function nameOf({ id }: Space, term: string): string {
  return `${id} ${term}`;
}

interface SaidRow extends ItemRow {
  readonly space_id: number;
  /** The number of the passage or text that was asked for. */
  readonly n: number;
  readonly start_at: number;
  readonly end_at: number;
  readonly said_ref: string;
  readonly said_digest: string;
  readonly said_source: 'unverified' | null;
  readonly at: number;
  /** The record's bytes; null if another row of the result has them. */
  readonly bytes: Uint8Array | null;
}

function recordKey({ space_id, record_id }: SaidRow): string {
  return `${space_id} ${record_id}`;
}

function itemKey({ space, digest }: Pick<RecalledPassage, 'space' | 'digest'>): string {
  return `${digest} ${space}`;
}

/**
 * Makes the id of a passage, text or conversation from the number of its space and its own number in that space. SQLite
 * gives passages their ids in the same way.
 */
function idOf(space: number, n: number): number {
  return space * PASSAGES_PER_SPACE + n;
}

function placeOf(id: number): { space: number; n: number } {
  return { space: Math.floor(id / PASSAGES_PER_SPACE), n: id % PASSAGES_PER_SPACE };
}

/** Splits ids into two lists: the numbers of the spaces, and the numbers in these spaces. */
function placesOf(ids: readonly number[]): [number[], number[]] {
  const places = ids.map(placeOf);
  return [places.map(({ space }) => space), places.map(({ n }) => n)];
}

/** The number of passages of a space that contain a frequent word: a row of `word_counts`. */
export interface WordCount {
  readonly space: number;
  /** The word's key, as the database's bigint. */
  readonly key: string;
  readonly count: number;
  /** The number of passages in the space when the word was counted. */
  readonly passages: number;
}

/**
 * Stores counts of words for later recalls on all nodes. The answer does not wait for this write. A lost count is
 * computed again.
 */
export function keepCounts(
  connections: Connections,
  tenant: string,
  counts: readonly WordCount[],
): void {
  if (counts.length === 0) return;
  // Write in a fixed order, so that two recalls never deadlock.
  const sorted = counts.toSorted((a, b) => a.space - b.space || (a.key < b.key ? -1 : 1));
  const columns = columnsOf(sorted, ['space', 'key', 'count', 'passages']);
  const written = connections.memory.write((rows) =>
    rows.run(RECALL.keepCounts, tenant, ...columns),
  );
  written.catch(() => undefined);
}
