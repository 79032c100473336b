import { textsOf } from '../../core/memory-api/objects.ts';
import { recordOfBytes } from '../../core/memory-api/records.ts';
import { isDigest } from '../../core/memory/reference.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type {
  ItemFilter,
  ItemKey,
  ObjectKind,
  PageFilter,
  ServiceAnswer,
  ServiceItem,
  ServiceQuestion,
  ServiceSource,
} from '../../ports/service-store.ts';
import {
  allowedItems,
  listedItem,
  objectOfItem,
  outputItem,
  recalledItem,
} from '../service-store/item-shapes.ts';
import { type OriginRow, originOf, sourceIdOf, sourceNumber } from '../service-store/origins.ts';
import type { SharedSignals } from '../store/exchange-search.ts';
import { listTerms } from '../store/records.ts';
import { Search } from '../store/search.ts';
import { runWaiting } from '../store/steps.ts';
import type { Rows, SqlValue } from './rows.ts';
import { PostgresSource } from './postgres-source.ts';
import type { Spaces } from './spaces.ts';
import { MEMORY } from './statements/memory.ts';
import type { TenantTermKeys } from './term-keys.ts';
import type { WordCount } from './word-counts.ts';

/** Memories as people and models see them: searched, ranked by the core, listed. */

/** Outputs that are read at once, where a list asks for words in them. */
const OUTPUTS_READ = 32;

interface ItemRow extends OriginRow {
  readonly record_id: number;
  readonly message: number;
  readonly kind: ObjectKind;
  readonly created_at: number;
  readonly role: 'user' | 'assistant';
  readonly bytes: Uint8Array;
}

type OutputRow = Pick<ItemRow, 'record_id' | 'created_at' | 'bytes'> & OriginRow;

export type FoundItems = Pick<ServiceAnswer, 'exchanges' | 'sessions' | 'isTruncated'> & {
  readonly items: ServiceItem[];
};

export class Items {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #spaces: Spaces;
  readonly #keys: TenantTermKeys;

  constructor(
    rows: Rows,
    { tenant, spaces, keys }: { tenant: string; spaces: Spaces; keys: TenantTermKeys },
  ) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#spaces = spaces;
    this.#keys = keys;
  }

  /** `counted`: gets the counts of words that are to be kept after it. */
  async recall(
    question: ServiceQuestion,
    signals: SharedSignals,
    counted: WordCount[],
  ): Promise<FoundItems> {
    const { space, olderSpaces = [], text, recent, tokensMax, now, agent } = question;
    if (text === undefined) return { items: [], isTruncated: false };
    const asked = {
      space,
      olderSpaces,
      humanText: text,
      assistantText: recent,
      excludeDigests: await this.#textsOf(question),
      tokensMax,
      now,
      ...(agent === undefined ? {} : { agent }),
    };
    const parts = { keys: this.#keys, counted };
    const search = new Search(new PostgresSource(this.#rows, this.#tenant, parts), signals);
    const found = await runWaiting(search.recall(asked, question.otherSpaces));
    const { passages, ...more } = found;
    const items = await this.#recalled(passages);
    return { ...more, ...allowedItems(items, question) };
  }

  async list(filter: ItemFilter): Promise<ServiceItem[]> {
    if (filter.kind === 'tool_output') return this.#outputs(filter);
    const { spaces, role, session, refs, since, until, words, kind, sourceId } = filter;
    const chosen = await this.#spaces.chosen(spaces);
    const terms = listTerms(words ?? '');
    // Words that say nothing find nothing.
    if (words !== undefined && terms.length === 0) return [];
    const values: SqlValue[] = [
      this.#tenant,
      chosen,
      role ?? null,
      session ?? null,
      since ?? null,
      until ?? null,
      kind ?? null,
      sourceId === undefined ? null : sourceNumber(sourceId),
      refs ?? null,
      filter.limit,
      filter.offset,
    ];
    const rows =
      terms.length === 0
        ? await this.#rows.all<ItemRow>(MEMORY.listItems, ...values)
        : await this.#rows.all<ItemRow>(
            MEMORY.searchItems,
            ...values,
            ...this.#wordsIn(chosen, terms),
          );
    return rows.map((row) => listedItem(factsOf(row), wholeOf(row)));
  }

  async digestOf({ space, itemId }: ItemKey): Promise<string | undefined> {
    const values = [this.#tenant, space, objectOfItem(itemId)] as const;
    return (await this.#rows.get<{ digest: string }>(MEMORY.digestOfItem, ...values))?.digest;
  }

  async sources({ spaces, limit, offset }: PageFilter): Promise<ServiceSource[]> {
    const chosen = await this.#spaces.chosen(spaces);
    const rows = await this.#rows.all<
      Pick<ServiceSource, 'space' | 'session' | 'client' | 'records' | 'bytes'> & {
        id: number;
        first_seen: number;
        last_seen: number;
      }
    >(MEMORY.listSources, this.#tenant, chosen, limit, offset);
    return rows.map(({ id, first_seen: firstSeen, last_seen: lastSeen, ...source }) => ({
      sourceId: sourceIdOf(id),
      ...source,
      firstSeen,
      lastSeen,
    }));
  }

  /** Each term in each space, as the index there has it. */
  #wordsIn(spaces: readonly number[], terms: readonly string[]): SqlValue[] {
    const pairs = spaces.flatMap((space) =>
      terms.map((term, place) => ({ space, key: this.#keys.keyOf(space, term), place })),
    );
    return [
      pairs.map(({ space }) => space),
      pairs.map(({ key }) => key),
      pairs.map(({ place }) => place),
      terms.length,
    ];
  }

  // Outputs are in no index: they are read newest first, until the page is full.
  async #outputs({ spaces, session, words, role, offset, limit }: ItemFilter) {
    const terms = listTerms(words ?? '');
    if (role !== undefined || (words !== undefined && terms.length === 0)) return [];
    const chosen = await this.#spaces.chosen(spaces);
    const found: ServiceItem[] = [];
    let last: OutputRow | undefined;
    while (found.length < offset + limit) {
      // oxlint-disable-next-line no-await-in-loop -- The next page begins where this one ends.
      const rows: OutputRow[] = await this.#rows.all<OutputRow>(
        MEMORY.listOutputs,
        this.#tenant,
        chosen,
        session ?? null,
        last?.observed_at ?? null,
        last?.record_id ?? null,
        OUTPUTS_READ,
      );
      for (const row of rows) {
        const facts = {
          object: row.record_id,
          createdAt: row.created_at,
          origin: originOf(row),
        };
        const item = outputItem(facts, row.bytes, terms);
        if (item !== undefined) found.push(item);
      }
      last = rows.at(-1);
      if (rows.length < OUTPUTS_READ) break;
    }
    return found.slice(offset, offset + limit);
  }

  /** Names of the texts of records that the client has in its prompt. */
  async #textsOf({ space, olderSpaces = [], otherSpaces, excludeDigests }: ServiceQuestion) {
    const texts = excludeDigests.filter(isDigest);
    if (texts.length === excludeDigests.length) return texts;
    const rows = await this.#rows.all<{ digest: string }>(
      MEMORY.textsOfRecords,
      this.#tenant,
      [space, ...olderSpaces, ...otherSpaces],
      excludeDigests,
    );
    return [...texts, ...rows.map(({ digest }) => digest)];
  }

  async #recalled(passages: readonly RecalledPassage[]): Promise<ServiceItem[]> {
    if (passages.length === 0) return [];
    const rows = await this.#rows.all<ItemRow & { place: number }>(
      MEMORY.itemsOfTexts,
      this.#tenant,
      passages.map(({ space }) => space),
      passages.map(({ digest }) => digest),
    );
    const byPlace = new Map(rows.map((row) => [row.place, row]));
    const seen = new Map<string, number>();
    return passages.flatMap((passage, at) => {
      const row = byPlace.get(at + 1);
      if (row === undefined) return [];
      return [recalledItem(factsOf(row), { whole: wholeOf(row), passage }, seen)];
    });
  }
}

function factsOf(row: ItemRow) {
  const { record_id: object, message, kind, role, created_at: createdAt } = row;
  return { object, message, kind, role, createdAt, origin: originOf(row) };
}

function wholeOf({ bytes, message }: ItemRow): string {
  return textsOf(recordOfBytes(bytes))[message]?.text ?? '';
}
