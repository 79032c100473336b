import { textsOf } from '../../core/objects.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { isDigest } from '../../../../src/core/memory/reference.ts';
import type { RecalledPassage, RecallQuestion } from '../../../../src/ports/memory.ts';
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
  type OriginRow,
  originOf,
  sourceIdOf,
  sourceNumber,
} from '../service-store/row-shapes.ts';
import type { SharedSignals } from '../../../../src/adapters/store/exchange-search.ts';
import { listTerms } from '../../../../src/adapters/store/records.ts';
import { Search } from '../../../../src/adapters/store/search.ts';
import { runWaiting } from '../../../../src/adapters/store/steps.ts';
import type { Rows, SqlValue } from './rows.ts';
import { PostgresSource, type WordCount } from './postgres-source.ts';
import type { Spaces } from './spaces.ts';
import { MEMORY } from './statements/memory.ts';
import type { TenantTermKeys } from './term-keys.ts';

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

/** The first readings of a recall are sent with those of its proofs. */
export interface StartedRecall {
  readonly ready: Promise<unknown>;
  recall(signals: SharedSignals): Promise<FoundItems>;
}

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

  /**
   * Begins to read for a question with a text, and gives the search for it. `counted` gets the counts of
   * words that are to be kept after it.
   */
  begin(
    question: ServiceQuestion & { readonly text: string },
    counted: WordCount[],
  ): StartedRecall {
    const { space, olderSpaces = [], otherSpaces } = question;
    const parts = { keys: this.#keys, counted };
    const source = new PostgresSource(this.#rows, this.#tenant, parts);
    const ready = Promise.all([
      this.#textsOf(question),
      source.readSpaces([space, ...olderSpaces, ...otherSpaces]),
    ]);
    return {
      ready,
      recall: async (signals) => {
        const [excludeDigests] = await ready;
        const search = new Search(source, signals);
        const asked = askedIn(question, excludeDigests);
        const { passages, ...more } = await runWaiting(search.recall(asked, otherSpaces));
        return { ...more, ...allowedItems(itemsOf(source, passages), question) };
      },
    };
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
}

function askedIn(
  question: ServiceQuestion & { readonly text: string },
  excludeDigests: readonly string[],
): RecallQuestion {
  const { space, olderSpaces = [], text, recent, tokensMax, now, agent } = question;
  return {
    space,
    olderSpaces,
    humanText: text,
    assistantText: recent,
    excludeDigests,
    tokensMax,
    now,
    ...(agent === undefined ? {} : { agent }),
  };
}

function itemsOf(source: PostgresSource, passages: readonly RecalledPassage[]): ServiceItem[] {
  const seen = new Map<string, number>();
  return passages.flatMap((passage) => {
    const item = source.itemOf(passage);
    return item === undefined
      ? []
      : [recalledItem(item.facts, { whole: item.whole, passage }, seen)];
  });
}

function factsOf(row: ItemRow) {
  const { record_id: object, message, kind, role, created_at: createdAt } = row;
  return { object, message, kind, role, createdAt, origin: originOf(row) };
}

function wholeOf({ bytes, message }: ItemRow): string {
  return textsOf(recordOfBytes(bytes))[message]?.text ?? '';
}
