import { textsOf } from '../../core/objects.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { isDigest } from '../../../../src/core/memory/reference.ts';
import type {
  ItemFilter,
  ItemKey,
  ObjectKind,
  PageFilter,
  ServiceItem,
  ServiceQuestion,
  ServiceSource,
} from '../../ports/service-store.ts';
import { listTerms } from '../../../../src/adapters/store/records.ts';
import type { Rows, SqlValue } from '../../ports/rows.ts';
import {
  type ItemFacts,
  listedItem,
  objectOfItem,
  type OriginRow,
  originOf,
  outputItem,
  sourceIdOf,
  sourceNumber,
} from './row-shapes.ts';
import type { Spaces } from './spaces.ts';
import { MEMORY } from './statements.ts';

/** Memories as people and models see them: listed, searched by words, named. */

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

/** The index of an engine, for lists that ask for words. */
export interface WordSearch {
  readonly statement: string;
  /** The values of `$13` and on. */
  valuesOf(spaces: readonly number[], terms: readonly string[]): SqlValue[];
}

export class Items {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #spaces: Spaces;

  constructor(rows: Rows, tenant: string, spaces: Spaces) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#spaces = spaces;
  }

  async list(filter: ItemFilter, search: WordSearch): Promise<ServiceItem[]> {
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
            search.statement,
            ...values,
            terms.length,
            ...search.valuesOf(chosen, terms),
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

  /** A text with the item that it is of; undefined for a text that has gone. */
  async itemOf(space: string, digest: string): Promise<SaidItem | undefined> {
    const row = await this.#rows.get<ItemRow>(MEMORY.itemOfText, this.#tenant, space, digest);
    return row === undefined ? undefined : { facts: factsOf(row), whole: wholeOf(row) };
  }

  /** Names of the texts of records that the client has in its prompt. */
  async textsOf({ space, olderSpaces = [], otherSpaces, excludeDigests }: ServiceQuestion) {
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

export interface SaidItem {
  readonly facts: ItemFacts;
  readonly whole: string;
}

function factsOf(row: ItemRow): ItemFacts {
  const { record_id: object, message, kind, role, created_at: createdAt } = row;
  return { object, message, kind, role, createdAt, origin: originOf(row) };
}

function wholeOf({ bytes, message }: ItemRow): string {
  return textsOf(recordOfBytes(bytes))[message]?.text ?? '';
}
