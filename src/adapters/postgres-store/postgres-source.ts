import { textsOf } from '../../core/memory-api/objects.ts';
import { recordOfBytes } from '../../core/memory-api/records.ts';
import type { Span } from '../../core/recall/dates.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type {
  ExchangePart,
  ExchangeParts,
  ExchangePlace,
  Passage,
  PassageOfRecord,
  Places,
  RecallSource,
  SaidPassage,
  Session,
  Space,
  SpokenText,
  TermCount,
  Window,
} from '../store/recall-source.ts';
import { done, type Steps, waitFor } from '../store/steps.ts';
import type { Rows } from './rows.ts';
import { idOf, placeOf, placesOf } from './passage-ids.ts';
import { RECALL } from './statements/recall.ts';
import type { TenantTermKeys } from './term-keys.ts';
import type { WordCount } from './word-counts.ts';
import { WordPlaces } from './word-places.ts';

/**
 * Reads for a recall out of PostgreSQL, in one transaction.
 */

interface PassageRow {
  readonly space_id: number;
  readonly n: number;
  readonly text_n: number;
  readonly position: number;
  readonly chars: number;
  readonly keys: Buffer;
}

interface TextRow {
  readonly space_id: number;
  readonly n: number;
  readonly start_at: number;
  readonly end_at: number;
  readonly ref: string;
  readonly digest: string;
  readonly space: string;
  readonly role: 'user' | 'assistant';
  readonly at: number;
  readonly source: 'unverified' | null;
  readonly message: number;
  readonly record_id: number;
}

interface PartRow {
  readonly place: number;
  readonly part: number;
  readonly text_n: number;
  readonly chars: number;
  readonly keys: Buffer;
}

interface Held {
  readonly client: string;
  readonly texts: readonly { readonly text: string }[];
}

export class PostgresSource implements RecallSource {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #keys: TenantTermKeys;
  readonly #words: WordPlaces;

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
    return waitFor(this.#all<Space>(RECALL.spaces, names));
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
    const asked = this.#all<{ text_n: number; n: number }>(RECALL.passagesOf, space.id, digests);
    return waitFor(
      asked.then((rows) =>
        rows.map(({ text_n, n }) => ({
          record: idOf(space.id, text_n),
          passage: idOf(space.id, n),
        })),
      ),
    );
  }

  windows(ids: readonly number[], most: number): Steps<readonly Window[]> {
    const asked = this.#all<{ space_id: number; n: number; around: string }>(
      RECALL.windows,
      ...placesOf(ids),
      most,
    );
    return waitFor(
      asked.then((rows) =>
        rows.map(({ space_id: space, n, around }) => ({
          id: idOf(space, n),
          around: around.split(',').map((one) => idOf(space, Number(one))),
        })),
      ),
    );
  }

  passages(ids: readonly number[]): Steps<readonly Passage[]> {
    const asked = this.#all<PassageRow>(RECALL.passages, ...placesOf(ids));
    return waitFor(
      asked.then((rows) =>
        rows.map(({ space_id: space, n, text_n, position, chars, keys }) => ({
          id: idOf(space, n),
          record: idOf(space, text_n),
          position,
          chars,
          terms: this.#keys.termsOf(space, keys),
        })),
      ),
    );
  }

  timesOf(records: readonly number[]): Steps<readonly number[]> {
    const asked = this.#all<{ at: number }>(RECALL.timesOf, ...placesOf(records));
    return waitFor(asked.then((rows) => rows.map(({ at }) => at)));
  }

  texts(ids: readonly number[]): Steps<ReadonlyMap<number, Omit<RecalledPassage, 'score'>>> {
    return waitFor(this.#texts(ids));
  }

  exchangesOf(ids: readonly number[], most: number): Steps<readonly ExchangePlace[]> {
    const asked = this.#all<{
      space_id: number;
      conversation_id: number;
      exchange: number;
      text_n: number;
    }>(RECALL.exchangesOf, ...placesOf(ids), most);
    return waitFor(
      asked.then((rows) =>
        rows.map(({ space_id: space, conversation_id, exchange, text_n }) => ({
          conversation: idOf(space, conversation_id),
          exchange,
          record: idOf(space, text_n),
        })),
      ),
    );
  }

  readExchanges(places: readonly ExchangePlace[]): Steps<readonly ExchangeParts[]> {
    return waitFor(this.#readExchanges(places));
  }

  readRecords(records: readonly number[]): Steps<readonly SpokenText[]> {
    return waitFor(this.#readRecords(records));
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

  saidWith(space: Space, terms: readonly string[], most: number): Steps<readonly SaidPassage[]> {
    return waitFor(this.#saidWith(space, terms, most));
  }

  async #texts(ids: readonly number[]): Promise<Map<number, Omit<RecalledPassage, 'score'>>> {
    const rows = await this.#all<TextRow>(RECALL.texts, ...placesOf(ids));
    const held = await this.#heldBy(rows);
    return new Map(
      rows.map((row) => {
        const { ref, digest, space, role, at, source } = row;
        const { client, text } = saidBy(row, held);
        const said = text.slice(row.start_at, row.end_at);
        const mark = source === null ? {} : { source };
        return [
          idOf(row.space_id, row.n),
          { ref, digest, space, role, at, client, text: said, ...mark },
        ];
      }),
    );
  }

  async #readExchanges(places: readonly ExchangePlace[]): Promise<ExchangeParts[]> {
    const records = places.map(({ record }) => record);
    const facts = await this.#all<{ at: number; branch: string | null }>(
      RECALL.exchangeFacts,
      ...placesOf(records),
    );
    const [spaces, conversations] = placesOf(places.map(({ conversation }) => conversation));
    const exchanges = places.map(({ exchange }) => exchange);
    const rows = await this.#all<PartRow>(RECALL.exchangeParts, spaces, conversations, exchanges);
    return places.map(({ conversation, exchange }, at) => {
      const { space } = placeOf(conversation);
      const parts = rows
        .filter(({ place }) => place === at + 1)
        .map(({ part, text_n, chars, keys }): ExchangePart => ({
          speaker: part === 3 ? 'answer' : part === 2 ? 'unverified' : 'person',
          record: idOf(space, text_n),
          chars,
          terms: this.#keys.termsOf(space, keys),
        }));
      const { at: saidAt = 0, branch = null } = facts[at] ?? {};
      return { conversation, exchange, at: saidAt, branch, parts };
    });
  }

  async #readRecords(records: readonly number[]): Promise<SpokenText[]> {
    const rows = await this.#all<TextRow>(RECALL.records, ...placesOf(records));
    const held = await this.#heldBy(rows);
    return rows.map((row) => {
      const { role, ref, space, at, source } = row;
      const id = idOf(row.space_id, row.n);
      return { id, role, ref, space, at, source, ...saidBy(row, held), root: null, files: null };
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

  async #saidWith(space: Space, terms: readonly string[], most: number): Promise<SaidPassage[]> {
    const keys = this.#keys.keysOf(space.id, terms);
    const rows = await this.#all<TextRow>(RECALL.saidWith, space.id, keys, most);
    const held = await this.#heldBy(rows);
    return rows.map((row) => {
      const { ref, digest, space: name, role, at } = row;
      const { client, text } = saidBy(row, held);
      return {
        ref,
        digest,
        space: name,
        role,
        at,
        client,
        text: text.slice(row.start_at, row.end_at),
      };
    });
  }

  /** The records of these texts, each read once. */
  async #heldBy(rows: readonly TextRow[]): Promise<ReadonlyMap<string, Held>> {
    const wanted = new Map(rows.map((row) => [heldKey(row.space_id, row.record_id), row]));
    if (wanted.size === 0) return new Map();
    const asked = [...wanted.values()];
    const found = await this.#all<{
      space_id: number;
      id: number;
      client: string;
      bytes: Uint8Array;
    }>(
      RECALL.recordBytes,
      asked.map((row) => row.space_id),
      asked.map((row) => row.record_id),
    );
    return new Map(
      found.map(({ space_id, id, client, bytes }) => [
        heldKey(space_id, id),
        { client, texts: textsOf(recordOfBytes(bytes)) },
      ]),
    );
  }

  #all<Row>(statement: string, ...values: Parameters<Rows['all']>[1][]): Promise<Row[]> {
    return this.#rows.all<Row>(statement, this.#tenant, ...values);
  }
}

function saidBy(
  { space_id, record_id, message }: TextRow,
  held: ReadonlyMap<string, Held>,
): { client: string; text: string } {
  const record = held.get(heldKey(space_id, record_id));
  return { client: record?.client ?? '', text: record?.texts[message]?.text ?? '' };
}

function heldKey(space: number, record: number): string {
  return `${space} ${record}`;
}
