import { PASSAGE_TOKENS_MAX } from '../../core/passages.ts';
import type { Candidate } from '../../core/ranking.ts';
import type { RecordRole } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { POSITIONS_PER_EXCHANGE } from './schema.ts';

/**
 * What is ranked and shown as one: a passage with what was said before and after it. A question and
 * its short answer are one unit: alone, neither says much.
 */

/** Units whose neighbours are candidates too: an answer need not repeat the question's words. */
const NEIGHBOURS_OF = 12;
/** Passages to each side that are read: a unit of two beside a unit of two. */
const SAID_MAX = 4;
/** As `passageTokens` counts ASCII; terms are not needed to see that two passages are short. */
const CHARS_PER_TOKEN = 3.6;

export interface PassageRow {
  readonly id: number;
  readonly record: number;
  readonly conversation: number;
  readonly position: number;
  readonly chars: number;
  readonly terms: string;
  readonly role: RecordRole;
  readonly at: number;
  readonly digest: string;
}

/** To be followed by a condition on p, the passage. */
export const SELECT_PASSAGE = `SELECT p.id, p.record, p.conversation, p.position,
    p.end - p.start AS chars, p.terms, r.role, r.at, r.digest
  FROM passages p JOIN records r ON r.id = p.record`;

export interface Unit extends Candidate {
  /** Ids of its passages, in the order they were said; the first is the unit's own id. */
  readonly passages: readonly number[];
}

export class UnitReader {
  readonly #database: Database;
  readonly #excluded: ReadonlySet<string>;
  readonly #units = new Map<number, Unit>();
  readonly #taken = new Set<number>();
  readonly #terms = new Map<number, readonly string[]>();

  /** Nothing with one of these digests becomes part of a unit. */
  constructor(database: Database, excluded: ReadonlySet<string>) {
    this.#database = database;
    this.#excluded = excluded;
  }

  /** Best first, then their neighbours; every passage is in one unit at most. */
  read(rows: readonly PassageRow[]): Unit[] {
    const beside: (() => void)[] = [];
    for (const [place, row] of rows.entries()) {
      if (this.#taken.has(row.id)) continue;
      const { said, at } = this.#around(row);
      const { first, last } = this.#readAt(said, at);
      if (place >= NEIGHBOURS_OF) continue;
      beside.push(() => this.#readBeside(said, first - 1));
      beside.push(() => this.#readBeside(said, last + 1));
    }
    for (const read of beside) read();
    return [...this.#units.values()];
  }

  #readBeside(said: readonly PassageRow[], at: number): void {
    const row = said[at];
    if (row === undefined || this.#taken.has(row.id) || this.#excluded.has(row.digest)) return;
    this.#readAt(said, at);
  }

  /** Where the unit that it made begins and ends. */
  #readAt(said: readonly PassageRow[], at: number): Range {
    const { first, last } = rangeAt(said, at);
    const isWhole = said
      .slice(first, last + 1)
      .every(({ id, digest }) => !this.#taken.has(id) && !this.#excluded.has(digest));
    const range = isWhole ? { first, last } : { first: at, last: at };
    this.#add(said.slice(range.first, range.last + 1), {
      previous: this.#termsAt(said, range.first - 1),
      next: this.#termsAt(said, range.last + 1),
    });
    return range;
  }

  #add(
    parts: readonly PassageRow[],
    around: { previous: readonly string[]; next: readonly string[] },
  ): void {
    const [first] = parts;
    if (first === undefined) return;
    const { id, record, at } = first;
    const isUsers = parts.some((part) => part.role === 'user');
    const passages = parts.map((part) => part.id);
    for (const passage of passages) this.#taken.add(passage);
    this.#units.set(id, {
      id,
      record,
      at,
      passages,
      role: isUsers ? 'user' : 'assistant',
      terms: this.#termsOf(parts),
      ...around,
    });
  }

  #termsAt(said: readonly PassageRow[], at: number): readonly string[] {
    if (said[at] === undefined) return [];
    const { first, last } = rangeAt(said, at);
    return this.#termsOf(said.slice(first, last + 1));
  }

  #termsOf(parts: readonly PassageRow[]): readonly string[] {
    const [first, ...others] = parts.map((part) => this.#split(part));
    return first !== undefined && others.length === 0 ? first : [first ?? [], ...others].flat();
  }

  // A passage is in the windows of its neighbours too.
  #split({ id, terms }: PassageRow): readonly string[] {
    const known = this.#terms.get(id);
    if (known !== undefined) return known;
    const made = terms === '' ? [] : terms.split(' ');
    this.#terms.set(id, made);
    return made;
  }

  /** The passages around one, in the order they were said, and its place among them. */
  #around(row: PassageRow): { said: PassageRow[]; at: number } {
    const said = this.#database.all<PassageRow>(
      AROUND,
      row.conversation,
      row.position,
      row.id,
      row.conversation,
      row.position,
      row.id,
    );
    const isAfter = (one: PassageRow): boolean =>
      one.position > row.position || (one.position === row.position && one.id > row.id);
    const first = said.findIndex(isAfter);
    const at = first === -1 ? said.length : first;
    return { said: said.toSpliced(at, 0, row), at };
  }
}

// One query and not two: of its 30 us a third is the call.
const AROUND = `SELECT * FROM (SELECT * FROM (${SELECT_PASSAGE}
    WHERE p.conversation = ? AND (p.position, p.id) < (?, ?)
    ORDER BY p.position DESC, p.id DESC LIMIT ${SAID_MAX})
  UNION ALL SELECT * FROM (${SELECT_PASSAGE}
    WHERE p.conversation = ? AND (p.position, p.id) > (?, ?)
    ORDER BY p.position, p.id LIMIT ${SAID_MAX}))
  ORDER BY position, id`;

interface Range {
  readonly first: number;
  readonly last: number;
}

/** A passage alone, or with the one that it belongs to, the following before the preceding. */
function rangeAt(said: readonly PassageRow[], at: number): Range {
  const [previous, row, next] = [said[at - 1], said[at], said[at + 1]];
  if (row === undefined) return { first: at, last: at };
  if (next !== undefined && belong(row, next)) return { first: at, last: at + 1 };
  if (previous !== undefined && belong(previous, row)) return { first: at - 1, last: at };
  return { first: at, last: at };
}

function belong(one: PassageRow, other: PassageRow): boolean {
  return (
    exchangeOf(one) === exchangeOf(other) &&
    one.record !== other.record &&
    one.chars + other.chars <= PASSAGE_TOKENS_MAX * CHARS_PER_TOKEN
  );
}

function exchangeOf({ position }: PassageRow): number {
  return Math.floor(position / POSITIONS_PER_EXCHANGE);
}
