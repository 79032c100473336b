import type { AgentLook } from '../../core/recall/agent-facts.ts';
import type { RecallAnswer, RecallQuestion, RecalledPassage } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import type { RecallMarks } from './recall-marks.ts';
import { Search, type Weighed } from './search.ts';
import type { Signals } from './signals.ts';
import { done, runAtOnce, type Steps } from './steps.ts';
import type { Span } from '../../core/recall/dates.ts';
import {
  type ExchangePart,
  type ExchangeParts,
  type ExchangePlace,
  type HolderLimits,
  NO_PLACES,
  type Passage,
  type PassageOfRecord,
  type Places,
  placesFrom,
  type RecallSource,
  type SaidText,
  type Session,
  type Space,
  type SpokenText,
  type TermCount,
  type Window,
} from './recall-source.ts';
import { wordNumbers } from '../../core/recall/exchange-ranking.ts';
import {
  PASSAGES_PER_RECORD,
  PASSAGES_PER_SPACE,
  POSITIONS_PER_EXCHANGE,
  SAID_WITH_LOOKED_MAX,
} from './schema.ts';
import { decoded, type Stored, type StoredText, textOf } from './driver.ts';
import { quoted } from './records.ts';

export class FileSearch {
  readonly #database: Database;
  readonly #search: Search;

  /** Without `signals`, an agent's question gets passages like a chat's. */
  constructor(database: Database, signals?: Pick<Signals, 'of' | 'add'>, marks?: RecallMarks) {
    const shared = signals && {
      of: (space: number) => done(signals.of(space)),
      add: signals.add.bind(signals),
    };
    this.#database = database;
    this.#search = new Search(new SqliteSource(database), shared, marks);
  }

  recall(
    given: RecallQuestion,
    others?: readonly string[],
    explain?: (look: AgentLook) => void,
  ): RecallAnswer {
    return runAtOnce(this.#search.recall(given, others, explain));
  }

  weigh(given: RecallQuestion, most: number): Weighed {
    return runAtOnce(this.#search.weigh(given, most));
  }

  /**
   * Runs a recall about the newest record. Afterwards the code is compiled, the statements are prepared and index pages
   * are cached, so that the first recall of a request keeps its deadline.
   */
  warm(): void {
    const newest = this.#database.get<{ space: string; terms: string; at: number }>(NEWEST);
    if (newest === undefined) return;
    const { space, terms, at } = newest;
    const asked = { space, humanText: terms, assistantText: terms, excludeDigests: [] };
    this.recall({ ...asked, tokensMax: WARMING_TOKENS, now: at });
  }
}

/** Token limit of the recall in warm(): the default of recalls. */
const WARMING_TOKENS = 512;

const NEWEST = `SELECT s.name AS space, p.terms, r.at FROM records r JOIN passages p ON p.record = r.id
  JOIN spaces s ON s.id = r.space ORDER BY r.at DESC LIMIT 1`;

/**
 * Reads from an SQLite file for a recall. The full-text index only finds passages by single terms. Every query on it
 * has a range of ids, so that it neither returns nor counts passages of another space.
 */
class SqliteSource implements RecallSource {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  generation(): string {
    return this.#database.generation();
  }

  expectTerms(): void {
    // The tables have every term as text, so nothing needs to be announced.
  }

  spaces(names: readonly string[]): Steps<readonly Space[]> {
    return done(this.#database.all<Space>(SPACES, JSON.stringify(names)));
  }

  // One query for all terms: with one query each, half of the time would be overhead.
  countTerms(space: Space, terms: readonly string[], most: number): Steps<readonly TermCount[]> {
    const { first, last } = rangeOf(space);
    const values = JSON.stringify(terms.map(quoted));
    const rows = this.#database.all<FewRow>(FEW, first, last, values, most);
    const counts = terms.map((): TermCount => ({ found: 0, places: NO_PLACES }));
    for (const { key, few } of rows) {
      const colon = few.indexOf(':');
      const places = placesFrom(few.slice(colon + 1));
      counts[key] = { found: Number(few.slice(0, colon)), places };
    }
    return done(counts);
  }

  countTerm(space: Space, term: string, most: number): Steps<number> {
    const { first, last } = rangeOf(space);
    const row = this.#database.get<{ found: number }>(COUNT, quoted(term), first, last, most);
    return done(row?.found ?? 0);
  }

  placesOf(space: Space, terms: readonly string[], from: number): Steps<readonly Places[]> {
    const { first, last } = rangeOf(space);
    const places = (term: string): Places => {
      const row = this.#database.get<{ places: string }>(
        PLACES,
        first,
        quoted(term),
        first + from,
        last,
      );
      return placesFrom(row?.places ?? '');
    };
    return done(terms.map(places));
  }

  saidIn(space: Space, { from, to }: Span, most: number): Steps<readonly number[]> {
    const rows = this.#database.all<{ id: number }>(SAID_IN, space.id, from, to, most);
    return done(rows.map(({ id }) => id));
  }

  passagesOf(space: Space, digests: readonly string[]): Steps<readonly PassageOfRecord[]> {
    const row = this.#database.get<{ lines: string | null }>(
      PASSAGES_OF,
      JSON.stringify(digests),
      space.id,
    );
    const lines = row?.lines?.split('\n') ?? [];
    return done(
      lines.map((line) => {
        const [place, record, passage] = line.split(' ').map(Number);
        const digest = digests[place ?? 0] ?? '';
        return { digest, record: record ?? 0, passage: passage ?? 0 };
      }),
    );
  }

  windows(ids: readonly number[], most: number): Steps<readonly Window[]> {
    const rows = this.#database.all<{ id: number; around: string }>(
      WINDOWS,
      JSON.stringify(ids),
      most,
    );
    return done(
      rows.map(({ id, around }) => {
        const said = around.split(',').map(Number);
        const at = said.indexOf(id);
        return { id, around: said.slice(Math.max(0, at - most), at + most + 1) };
      }),
    );
  }

  passages(ids: readonly number[]): Steps<readonly Passage[]> {
    const row = this.#database.get<{ lines: string | null }>(PASSAGES, JSON.stringify(ids));
    return done(row?.lines?.split('\n').map(passageOf) ?? []);
  }

  timesOf(records: readonly number[]): Steps<readonly number[]> {
    const row = this.#database.get<{ times: string | null }>(TIMES, JSON.stringify(records));
    return done(row?.times?.split(',').map(Number) ?? []);
  }

  texts(ids: readonly number[]): Steps<ReadonlyMap<number, Omit<RecalledPassage, 'score'>>> {
    const rows = this.#database.all<PackedRow>(TEXTS, JSON.stringify(ids));
    const texts = rows.map(({ id, start, end, text, is_utf16, source, ...record }) => {
      const said = textOf({ text, is_utf16 }).slice(start, end);
      return [id, { ...record, text: said, ...(source === null ? {} : { source }) }] as const;
    });
    return done(new Map(texts));
  }

  exchangesOf(ids: readonly number[], most: number): Steps<readonly ExchangePlace[]> {
    return done(this.#database.all<ExchangePlace>(EXCHANGES_OF, JSON.stringify(ids), most));
  }

  readExchanges(places: readonly ExchangePlace[]): Steps<readonly ExchangeParts[]> {
    const asked = places.map(({ conversation, exchange, record }) => [
      conversation,
      exchange,
      record,
    ]);
    const rows = this.#database.all<ExchangeRow>(EXCHANGES, JSON.stringify(asked));
    return done(rows.map(({ lines, ...row }) => ({ ...row, parts: partsOf(lines) })));
  }

  readRecords(records: readonly number[]): Steps<readonly SpokenText[]> {
    return done(
      this.#database.all<Stored<SpokenText>>(RECORDS, JSON.stringify(records)).map(decoded),
    );
  }

  sessions({ id }: Space, most: number, sessionsMost: number): Steps<readonly Session[]> {
    return done(this.#database.all<Session>(SESSIONS, id, most, sessionsMost));
  }

  holders(
    space: Space,
    terms: readonly string[],
    { most, among }: HolderLimits,
  ): Steps<readonly (readonly number[])[]> {
    const { first, last } = rangeOf(space);
    const from = Math.max(first, last - among);
    const values = JSON.stringify(terms.map(quoted));
    const rows = this.#database.all<HolderRow>(HOLDERS, from, last, values, most);
    const holders = terms.map((): readonly number[] => []);
    for (const { key, held } of rows) holders[key] = held?.split(',').map(Number) ?? [];
    return done(holders);
  }

  opening(conversation: number, most: number): Steps<readonly number[]> {
    const rows = this.#database.all<{ id: number }>(OPENING, conversation, most);
    return done(rows.map(({ id }) => id));
  }

  closing(conversation: number, most: number): Steps<readonly number[]> {
    const rows = this.#database.all<{ id: number }>(CLOSING, conversation, most);
    return done(rows.map(({ id }) => id));
  }

  saidWith(space: Space, term: string, most: number): Steps<readonly SaidText[]> {
    const { first, last } = rangeOf(space);
    const rows = this.#database.all<Stored<SaidText>>(SAID_WITH, quoted(term), first, last, most);
    return done(rows.map(decoded));
  }
}

function rangeOf(space: Space): { first: number; last: number } {
  const first = space.id * PASSAGES_PER_SPACE;
  return { first, last: first + space.next };
}

const SPACES = `SELECT id, name, passages, terms, next FROM spaces
  WHERE name IN (SELECT value FROM json_each(?))`;

interface FewRow {
  readonly key: number;
  /** The number of passages, a colon, and the list of their numbers. */
  readonly few: string;
}

// The list of passage numbers as one text: 10,000 rows would take 10 ms, their text takes 1 ms. The CAST is needed
// because a driver may bind a number above 2^31 as a real, and the difference would print as "12.0".
const PLACES_TEXT = "coalesce(group_concat(rowid - CAST(?1 AS INTEGER)), '')";

const FEW = `SELECT e.key, (SELECT count(*) || ':' || ${PLACES_TEXT} FROM
    (SELECT rowid FROM passage_terms WHERE passage_terms MATCH e.value
      AND rowid BETWEEN ?1 AND ?2 LIMIT ?4)) AS few
  FROM json_each(?3) e`;

const COUNT = `SELECT count(*) AS found FROM (SELECT rowid FROM passage_terms
  WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ? LIMIT ?)`;

const PLACES = `SELECT ${PLACES_TEXT} AS places FROM passage_terms
  WHERE passage_terms MATCH ?2 AND rowid BETWEEN ?3 AND ?4`;

const SAID_IN = `SELECT p.id FROM (SELECT id FROM records INDEXED BY records_by_time
    WHERE space = ?1 AND at >= ?2 AND at < ?3 AND role = 'user' ORDER BY at DESC, id DESC LIMIT ?4) r
  CROSS JOIN passages p ON p.record = r.id LIMIT ?4`;

// CROSS JOIN makes SQLite join in this order. Without statistics it would begin with all passages.
const PASSAGES_OF = `SELECT group_concat(e.key || ' ' || r.id || ' ' || p.id, char(10)) AS lines
  FROM json_each(?) e CROSS JOIN records r ON r.space = ? AND r.digest = e.value
  CROSS JOIN passages p ON p.record = r.id`;

/**
 * Returns SQL for neighbours of the passage `c`, before it ('<') or after it ('>'): up to ?2 with its own position, and
 * up to ?2 with other positions.
 */
const SIDE = (isBeyond: '<' | '>', order: string): string => {
  const some = (condition: string): string => `SELECT id, position FROM (SELECT p.id, p.position
    FROM passages p WHERE p.conversation = c.conversation AND ${condition}
    ORDER BY p.position ${order}, p.id ${order} LIMIT ?2)`;
  // Passages with the same position have a query of their own. A prompt that is sent again has the positions of the
  // first one, and a single query would read all these passages one by one.
  return `${some(`p.position = c.position AND p.id ${isBeyond} c.id`)}
    UNION ALL ${some(`p.position ${isBeyond} c.position`)}`;
};

// One query reads only the ids of all windows, and passages() reads each passage once afterwards. A query with all
// columns would take 40 us for each window.
const WINDOWS = `SELECT c.id, (SELECT group_concat(id) FROM (
    SELECT id FROM (${SIDE('<', 'DESC')} UNION ALL SELECT c.id, c.position UNION ALL ${SIDE('>', 'ASC')})
    ORDER BY position, id)) AS around
  FROM json_each(?1) e CROSS JOIN passages c ON c.id = e.value ORDER BY e.key`;

// All rows as one text: a row of columns takes 5 us, a line of the text 1 us. Terms contain no line end.
const PASSAGES = `SELECT group_concat(p.id || ' ' || p.record || ' ' || p.position || ' ' ||
    (p.end - p.start) || ' ' || p.terms, char(10)) AS lines
  FROM json_each(?) e CROSS JOIN passages p ON p.id = e.value`;

function passageOf(line: string): Passage {
  const { from, fields } = fieldsOf(line, 4);
  const [id = 0, record = 0, position = 0, chars = 0] = fields.map(Number);
  const terms = line.slice(from);
  return { id, record, position, chars, terms: terms === '' ? [] : terms.split(' ') };
}

/** Returns the first `count` fields of a line, and the index at which its terms begin. */
function fieldsOf(line: string, count: number): { fields: string[]; from: number } {
  const fields: string[] = [];
  let from = 0;
  while (fields.length < count) {
    const end = line.indexOf(' ', from);
    fields.push(line.slice(from, end));
    from = end + 1;
  }
  return { fields, from };
}

// Selects one time for each id, in the order of the list.
const TIMES = `SELECT group_concat(coalesce(r.at, 0)) AS times
  FROM json_each(?) e LEFT JOIN records r ON r.id = e.value`;

interface PackedRow extends Omit<RecalledPassage, 'score' | 'source' | 'text'>, StoredText {
  readonly source: 'unverified' | null;
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

const TEXTS = `SELECT p.id, p.start, p.end, r.ref, r.digest, s.name AS space, r.role, r.text, r.is_utf16,
    r.at, r.client, r.source
  FROM json_each(?) e CROSS JOIN passages p ON p.id = e.value
  JOIN records r ON r.id = p.record JOIN spaces s ON s.id = r.space`;

const EXCHANGES_OF = `SELECT f.conversation, f.exchange, f.record, r.at FROM (
    SELECT p.conversation, p.position / ${POSITIONS_PER_EXCHANGE} AS exchange,
      max(p.record) AS record, min(e.key) AS place
    FROM json_each(?) e CROSS JOIN passages p ON p.id = e.value
    GROUP BY p.conversation, p.position / ${POSITIONS_PER_EXCHANGE} ORDER BY place LIMIT ?) f
  CROSS JOIN records r ON r.id = f.record ORDER BY f.place`;

interface ExchangeRow extends Omit<ExchangeParts, 'parts'> {
  readonly lines: string | null;
}

/** SQL for the speaker of a passage, which its position in the exchange shows; see shareOf in passage-index.ts. */
const SPEAKER = `CASE p.position % ${POSITIONS_PER_EXCHANGE} / ${POSITIONS_PER_EXCHANGE / 4}
  WHEN 3 THEN 'answer' WHEN 2 THEN 'unverified' ELSE 'person' END`;
/**
 * Returns SQL for the passages between two positions of the conversation `c.conversation`, at most PASSAGES_PER_RECORD,
 * each as one line of text: see PASSAGES.
 */
const LINES = (first: string, last: string): string => `SELECT
  ${SPEAKER} || ' ' || p.record || ' ' ||
  (p.end - p.start) || ' ' || p.terms AS line
  FROM passages p WHERE p.conversation = c.conversation AND p.position >= ${first}
  AND p.position < ${last} ORDER BY p.position LIMIT ${PASSAGES_PER_RECORD}`;

const BEGIN = `c.exchange * ${POSITIONS_PER_EXCHANGE}`;
const MIDDLE = `${BEGIN} + ${POSITIONS_PER_EXCHANGE / 2}`;
const LATE = `${BEGIN} + ${(POSITIONS_PER_EXCHANGE / 4) * 3}`;
const END = `${BEGIN} + ${POSITIONS_PER_EXCHANGE}`;

const EXCHANGES = `SELECT c.conversation, c.exchange,
    (SELECT r.branch FROM records r WHERE r.id = c.record) AS branch,
    (SELECT group_concat(line, char(10)) FROM (SELECT * FROM (${LINES(BEGIN, MIDDLE)})
      UNION ALL SELECT * FROM (${LINES(MIDDLE, LATE)})
      UNION ALL SELECT * FROM (${LINES(LATE, END)}))) AS lines
  FROM (SELECT value ->> 0 AS conversation, value ->> 1 AS exchange, value ->> 2 AS record
    FROM json_each(?)) c`;

function partsOf(lines: string | null): ExchangePart[] {
  return (lines?.split('\n') ?? []).map((line) => {
    const { from, fields } = fieldsOf(line, 3);
    const [speaker, record, chars] = fields;
    return {
      speaker: speaker === 'person' || speaker === 'unverified' ? speaker : 'answer',
      record: Number(record),
      chars: Number(chars),
      words: wordNumbers(line, from),
    };
  });
}

const RECORDS = `SELECT r.id, r.role, r.ref, s.name AS space, r.client, r.at, r.text, r.is_utf16,
    r.source, r.last_from AS lastFrom, v.root, v.files
  FROM json_each(?) e CROSS JOIN records r ON r.id = e.value JOIN spaces s ON s.id = r.space
  LEFT JOIN provenance v ON v.record = r.id`;

// Looks each conversation up once, not once for each of its records.
const SESSIONS = `SELECT c.id AS conversation, c.key, r.at, r.branches
  FROM (SELECT conversation, max(at) AS at, coalesce(group_concat(DISTINCT branch), '') AS branches
    FROM (SELECT conversation, at, branch, source FROM records INDEXED BY records_by_space_time
      WHERE space = ?1 ORDER BY at DESC, id DESC LIMIT ?2)
    GROUP BY conversation HAVING min(source IS NOT NULL) = 0) r
  CROSS JOIN conversations c ON c.space = ?1 AND c.key = r.conversation
  ORDER BY r.at DESC, c.id DESC LIMIT ?3`;

interface HolderRow {
  /** The index of the term in the list. */
  readonly key: number;
  /** The ids of conversations, separated by commas. */
  readonly held: string | null;
}

const HOLDERS = `SELECT e.key, (SELECT group_concat(DISTINCT p.conversation)
    FROM (SELECT rowid FROM passage_terms WHERE passage_terms MATCH e.value
      AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid DESC LIMIT ?4) f
    CROSS JOIN passages p ON p.id = f.rowid
    CROSS JOIN records r ON r.id = p.record AND r.source IS NULL) AS held
  FROM json_each(?3) e`;

const OPENING = `SELECT id FROM passages WHERE conversation = ? ORDER BY position LIMIT ?`;

const CLOSING = `SELECT id FROM passages WHERE conversation = ? ORDER BY position DESC LIMIT ?`;

// CROSS JOIN makes SQLite begin with the index, and there with the newest passage.
const SAID_WITH = `SELECT r.ref, r.digest, s.name AS space, r.role, r.text, r.is_utf16, r.at, r.client
  FROM (SELECT rowid FROM passage_terms WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ?
    ORDER BY rowid DESC LIMIT ${SAID_WITH_LOOKED_MAX}) f
  CROSS JOIN passages p ON p.id = f.rowid CROSS JOIN records r ON r.id = p.record AND r.role = 'user'
    AND r.source IS NULL
  JOIN spaces s ON s.id = r.space LIMIT ?`;
