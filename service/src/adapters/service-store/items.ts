import { isDigest } from '../../../../src/core/memory/reference.ts';
import type { RecalledPassage } from '../../../../src/ports/memory.ts';
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
import type { Database } from '../../../../src/adapters/store/database.ts';
import {
  allowedItems,
  type ItemFacts,
  listedItem,
  objectOfItem,
  outputItem,
  recalledItem,
  ORIGIN_COLUMNS,
  ORIGIN_JOINS,
  type OriginRow,
  originOf,
  sourceIdOf,
  sourceNumber,
} from './row-shapes.ts';
import { bestPassage, listTerms, quoted, whereOf } from '../../../../src/adapters/store/records.ts';
import { FileSearch } from '../../../../src/adapters/store/file-search.ts';
import type { Signals } from '../../../../src/adapters/store/signals.ts';
import { type StoredText, textOf } from '../../../../src/adapters/store/text.ts';
import { spaceCondition } from './spaces.ts';

/** Memories as people and models see them: searched, ranked by the core, listed. */

interface ItemRow extends OriginRow, StoredText {
  readonly object: number;
  readonly message: number;
  readonly kind: ObjectKind;
  readonly created_at: number;
  readonly role: 'user' | 'assistant';
}

interface OutputRow extends OriginRow {
  readonly created_at: number;
  readonly bytes: Uint8Array;
}

const ITEM_COLUMNS = `o.id AS object, t.message, o.kind, o.created_at, r.role, r.text, r.is_utf16,
  ${ORIGIN_COLUMNS}`;
// From the texts to their records: what is searched is the text.
const ITEMS = `FROM records r JOIN object_texts t ON t.record = r.id
  JOIN objects o ON o.id = t.object ${ORIGIN_JOINS}`;

export type FoundItems = Pick<ServiceAnswer, 'exchanges' | 'sessions' | 'isTruncated'> & {
  readonly items: ServiceItem[];
};

export class Items {
  readonly #database: Database;
  readonly #search: FileSearch;

  constructor(database: Database, signals: Signals) {
    this.#database = database;
    this.#search = new FileSearch(database, signals);
  }

  recall(question: ServiceQuestion): FoundItems {
    const { space, olderSpaces = [], text, recent, tokensMax, now, agent } = question;
    if (text === undefined) return { items: [], isTruncated: false };
    const asked = {
      space,
      olderSpaces,
      humanText: text,
      assistantText: recent,
      excludeDigests: this.#textsOf(question),
      tokensMax,
      now,
      ...(agent === undefined ? {} : { agent }),
    };
    const { passages, ...more } = this.#search.recall(asked, question.otherSpaces);
    const seen = new Map<string, number>();
    const items = passages.flatMap((passage) => this.#recalled(passage, seen) ?? []);
    return { ...more, ...allowedItems(items, question) };
  }

  list(filter: ItemFilter): ServiceItem[] {
    if (filter.kind === 'tool_output') return this.#outputs(filter);
    const { spaces, role, session, refs, since, until, words, kind, sourceId } = filter;
    const { where, values } = whereOf({
      ...(role === undefined ? {} : { role }),
      ...(session === undefined ? {} : { conversation: session }),
      ...(since === undefined ? {} : { since }),
      ...(until === undefined ? {} : { until }),
      ...(words === undefined ? {} : { words }),
    });
    const allowed = spaceCondition(spaces);
    const more = [where === '' ? 'WHERE 1' : where, allowed.where];
    const given: (string | number)[] = [...values, allowed.value];
    const add = (condition: string, value: string | number): void => {
      more.push(condition);
      given.push(value);
    };
    if (kind !== undefined) add('o.kind = ?', kind);
    if (sourceId !== undefined) add('o.source = ?', sourceNumber(sourceId));
    if (refs !== undefined) {
      const sql =
        '(o.ref IN (SELECT value FROM json_each(?)) OR o.text_ref IN (SELECT value FROM json_each(?)))';
      add(sql, JSON.stringify(refs));
      given.push(JSON.stringify(refs));
    }
    const terms = listTerms(words ?? '');
    const isRanked = terms.length > 0;
    return this.#database
      .all<ItemRow>(
        `SELECT ${ITEM_COLUMNS} ${ITEMS} ${isRanked ? bestPassage(terms) : ''}
         ${more.join(' AND ')}
         ORDER BY ${isRanked ? 'best.words DESC, ' : ''}r.at DESC, r.id DESC LIMIT ? OFFSET ?`,
        ...terms.map(quoted),
        ...given,
        filter.limit,
        filter.offset,
      )
      .map((row) => listedItem(factsOf(row), textOf(row)));
  }

  digestOf({ space, itemId }: ItemKey): string | undefined {
    return this.#database.get<{ digest: string }>(
      'SELECT o.digest FROM objects o JOIN spaces s ON s.id = o.space WHERE s.name = ? AND o.id = ?',
      space,
      objectOfItem(itemId),
    )?.digest;
  }

  sources({ spaces, limit, offset }: PageFilter): ServiceSource[] {
    const { where, value } = spaceCondition(spaces);
    return this.#database
      .all<Omit<ServiceSource, 'sourceId'> & { id: number }>(
        `SELECT c.id, s.name AS space, c.session, c.client, c.first_seen AS firstSeen,
           c.last_seen AS lastSeen, c.records, c.bytes
         FROM sources c JOIN spaces s ON s.id = c.space WHERE ${where}
         ORDER BY c.last_seen DESC, c.id DESC LIMIT ? OFFSET ?`,
        value,
        limit,
        offset,
      )
      .map(({ id, ...source }) => ({ sourceId: sourceIdOf(id), ...source }));
  }

  // Outputs are in no index: they are read one by one, newest first, until the page is full.
  #outputs({ spaces, session, words, role, offset, limit }: ItemFilter): ServiceItem[] {
    const terms = listTerms(words ?? '');
    if (role !== undefined || (words !== undefined && terms.length === 0)) return [];
    const { where, value } = spaceCondition(spaces);
    const ids = this.#database.all<{ id: number }>(
      `SELECT o.id FROM objects o ${ORIGIN_JOINS}
       WHERE o.kind = 'tool_output' AND ${where} AND c.session = coalesce(?, c.session)
       ORDER BY o.observed_at DESC, o.id DESC`,
      value,
      session ?? null,
    );
    const found: ServiceItem[] = [];
    for (const { id } of ids) {
      const item = this.#output(id, terms);
      if (item !== undefined) found.push(item);
      if (found.length === offset + limit) break;
    }
    return found.slice(offset);
  }

  /** Undefined when it lacks one of the terms. */
  #output(id: number, terms: readonly string[]): ServiceItem | undefined {
    const row = this.#database.get<OutputRow>(
      `SELECT o.created_at, o.bytes, ${ORIGIN_COLUMNS} FROM objects o ${ORIGIN_JOINS} WHERE o.id = ?`,
      id,
    );
    if (row === undefined) return undefined;
    const facts = { object: id, createdAt: row.created_at, origin: originOf(row) };
    return outputItem(facts, row.bytes, terms);
  }

  /** Names of the texts of records that the client has in its prompt. */
  #textsOf({ space, olderSpaces = [], otherSpaces, excludeDigests }: ServiceQuestion): string[] {
    const texts = excludeDigests.filter(isDigest);
    if (texts.length === excludeDigests.length) return texts;
    const rows = this.#database.all<{ digest: string }>(
      `SELECT r.digest FROM json_each(?) e CROSS JOIN spaces s
         ON s.name IN (SELECT value FROM json_each(?))
         CROSS JOIN objects o ON o.space = s.id AND o.digest = e.value
         JOIN object_texts t ON t.object = o.id JOIN records r ON r.id = t.record`,
      JSON.stringify(excludeDigests),
      JSON.stringify([space, ...olderSpaces, ...otherSpaces]),
    );
    return [...texts, ...rows.map(({ digest }) => digest)];
  }

  /** `seen`: passages of each text so far, so that every item has an id of its own. */
  #recalled(passage: RecalledPassage, seen: Map<string, number>): ServiceItem | undefined {
    const row = this.#database.get<ItemRow>(
      `SELECT ${ITEM_COLUMNS} ${ITEMS} WHERE s.name = ? AND r.space = s.id AND r.digest = ?`,
      passage.space,
      passage.digest,
    );
    if (row === undefined) return undefined;
    return recalledItem(factsOf(row), { whole: textOf(row), passage }, seen);
  }
}

function factsOf(row: ItemRow): ItemFacts {
  const { object, message, kind, role, created_at: createdAt } = row;
  return { object, message, kind, role, createdAt, origin: originOf(row) };
}
