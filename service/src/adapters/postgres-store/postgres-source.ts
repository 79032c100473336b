import type { Span } from '../../../../src/core/recall/dates.ts';
import type { RecalledPassage } from '../../../../src/ports/memory.ts';
import type {
  ExchangePart,
  ExchangeParts,
  ExchangePlace,
  Passage,
  PassageOfRecord,
  Places,
  RecallSource,
  SaidText,
  Session,
  Space,
  SpokenText,
  TermCount,
  Window,
} from '../../../../src/adapters/store/recall-source.ts';
import { done, type Steps, waitFor } from '../../../../src/adapters/store/steps.ts';
import { idOf, placeOf, placesOf } from './passage-ids.ts';
import type { Rows } from './rows.ts';
import { type SaidItem, type SaidRow, SaidTexts } from './said-texts.ts';
import { RECALL } from './statements/recall.ts';
import type { TenantTermKeys } from './term-keys.ts';
import type { WordCount } from './word-counts.ts';
import { WordPlaces } from './word-places.ts';

/**
 * Reads for one recall out of PostgreSQL, in one transaction. A round trip costs more than the rows, so
 * one statement brings what the next readings are going to ask for, and they find it here.
 */

interface WindowRow {
  readonly place: number;
  readonly space_id: number;
  readonly n: number;
  readonly text_n: number;
  readonly position: number;
  readonly chars: number;
  /** Null in a row that repeats another one's passage. */
  readonly keys: Buffer | null;
  readonly at: number | null;
}

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
  readonly #words: WordPlaces;
  readonly #said = new SaidTexts();
  readonly #passages = new Map<number, Passage>();
  /** When a record was said. */
  readonly #times = new Map<number, number>();
  /** By conversation and number. */
  readonly #exchanges = new Map<string, ExchangeParts>();
  /** By their names. */
  readonly #spaces = new Map<string, Promise<Space[]>>();

  constructor(
    rows: Rows,
    tenant: string,
    { keys, counted }: { readonly keys: TenantTermKeys; readonly counted: WordCount[] },
  ) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#keys = keys;
    this.#words = new WordPlaces(rows, tenant, { keys, counted });
  }

  /** Another node may write and delete at any time. */
  generation(): undefined {
    return undefined;
  }

  expectTerms(terms: () => Iterable<string>): void {
    this.#keys.expect(terms());
  }

  spaces(names: readonly string[]): Steps<readonly Space[]> {
    return waitFor(this.readSpaces(names));
  }

  /** A caller that knows the names earlier asks earlier. */
  readSpaces(names: readonly string[]): Promise<readonly Space[]> {
    const key = JSON.stringify(names);
    const asked = this.#spaces.get(key) ?? this.#all<Space>(RECALL.spaces, names);
    this.#spaces.set(key, asked);
    return asked;
  }

  countTerms(space: Space, terms: readonly string[], most: number): Steps<readonly TermCount[]> {
    return waitFor(this.#words.count(space, terms, most));
  }

  /** countTerms() has counted it, with all others of its question. */
  countTerm(space: Space, term: string, most: number): Steps<number> {
    return done(Math.min(this.#words.counted(space, term), most));
  }

  placesOf(space: Space, terms: readonly string[], from: number): Steps<readonly Places[]> {
    return waitFor(this.#words.places(space, terms, from));
  }

  saidIn(space: Space, { from, to }: Span, most: number): Steps<readonly number[]> {
    const asked = this.#all<{ n: number }>(RECALL.saidIn, space.id, from, to, most);
    return waitFor(asked.then((rows) => rows.map(({ n }) => idOf(space.id, n))));
  }

  passagesOf(space: Space, digests: readonly string[]): Steps<readonly PassageOfRecord[]> {
    const asked = this.#all<{ digest: string; text_n: number; n: number }>(
      RECALL.passagesOf,
      space.id,
      digests,
    );
    return waitFor(
      asked.then((rows) =>
        rows.map(({ digest, text_n, n }) => ({
          digest,
          record: idOf(space.id, text_n),
          passage: idOf(space.id, n),
        })),
      ),
    );
  }

  windows(ids: readonly number[], most: number): Steps<readonly Window[]> {
    return ids.length === 0 ? done([]) : waitFor(this.#windows(ids, most));
  }

  /** They came with their windows. */
  passages(ids: readonly number[]): Steps<readonly Passage[]> {
    return done(ids.flatMap((id) => this.#passages.get(id) ?? []));
  }

  /** They came with the windows of their passages. */
  timesOf(records: readonly number[]): Steps<readonly number[]> {
    return done(records.map((record) => this.#times.get(record) ?? 0));
  }

  texts(ids: readonly number[]): Steps<ReadonlyMap<number, Omit<RecalledPassage, 'score'>>> {
    return waitFor(this.#texts(ids));
  }

  exchangesOf(ids: readonly number[], most: number): Steps<readonly ExchangePlace[]> {
    return ids.length === 0 ? done([]) : waitFor(this.#exchangesOf(ids, most));
  }

  /** They came with their places. */
  readExchanges(places: readonly ExchangePlace[]): Steps<readonly ExchangeParts[]> {
    return done(places.flatMap((place) => this.#exchanges.get(exchangeKey(place)) ?? []));
  }

  readRecords(records: readonly number[]): Steps<readonly SpokenText[]> {
    return records.length === 0 ? done([]) : waitFor(this.#readRecords(records));
  }

  sessions(space: Space, most: number, sessionsMost: number): Steps<readonly Session[]> {
    const asked = this.#all<Omit<Session, 'conversation'> & { conversation_id: number }>(
      RECALL.sessions,
      space.id,
      most,
      sessionsMost,
    );
    return waitFor(
      asked.then((rows) =>
        rows.map(({ conversation_id: n, ...row }) => ({ ...row, conversation: idOf(space.id, n) })),
      ),
    );
  }

  holders(
    space: Space,
    terms: readonly string[],
    most: number,
  ): Steps<readonly (readonly number[])[]> {
    if (terms.length === 0) return done([]);
    return waitFor(this.#holders(space, terms, most));
  }

  opening(conversation: number, most: number): Steps<readonly number[]> {
    const { space, n } = placeOf(conversation);
    const asked = this.#all<{ n: number }>(RECALL.opening, space, n, most);
    return waitFor(asked.then((rows) => rows.map((row) => idOf(space, row.n))));
  }

  saidWith(space: Space, term: string, most: number): Steps<readonly SaidText[]> {
    const keys = this.#keys.keysOf(space.id, [term]);
    const asked = this.#all<SaidRow>(RECALL.saidWith, space.id, keys, most);
    return waitFor(asked.then((rows) => this.#textsOf(rows)));
  }

  /** Undefined for a passage that this recall has not given. */
  itemOf(passage: Pick<RecalledPassage, 'space' | 'digest'>): SaidItem | undefined {
    return this.#said.itemOf(passage);
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
    const texts = this.#said.add(rows);
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
      const place = places.get(row.place) ?? { conversation, exchange, record, parts: [] };
      if (!places.has(row.place)) {
        places.set(row.place, place);
        const { parts } = place;
        const facts = { conversation, exchange, at: at ?? 0, branch, parts };
        this.#exchanges.set(exchangeKey(place), facts);
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
      terms: this.#keys.termsOf(space, keys),
    };
  }

  async #readRecords(records: readonly number[]): Promise<SpokenText[]> {
    const rows = await this.#all<SaidRow>(RECALL.records, ...placesOf(records));
    const texts = this.#said.add(rows);
    return rows.map((row, place) => {
      const { role, said_ref: ref, space, at, said_source: source, client } = row;
      const text = texts[place] ?? '';
      const id = idOf(row.space_id, row.n);
      return { id, role, ref, space, at, source, client, text, root: null, files: null };
    });
  }

  async #holders(space: Space, terms: readonly string[], most: number): Promise<number[][]> {
    const rows = await this.#all<{ place: number; held: string | null }>(
      RECALL.holders,
      space.id,
      this.#keys.keysOf(space.id, terms),
      most,
    );
    const holders = terms.map((): number[] => []);
    for (const { place, held } of rows) {
      holders[place - 1] = held?.split(',').map((n) => idOf(space.id, Number(n))) ?? [];
    }
    return holders;
  }

  #all<Row>(statement: string, ...values: Parameters<Rows['all']>[1][]): Promise<Row[]> {
    return this.#rows.all<Row>(statement, this.#tenant, ...values);
  }
}

function exchangeKey({
  conversation,
  exchange,
}: Pick<ExchangePlace, 'conversation' | 'exchange'>): string {
  return `${conversation} ${exchange}`;
}
