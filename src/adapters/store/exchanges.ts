import type { RememberedExchange } from '../../core/recall/exchange-ranking.ts';
import { Vocabulary } from '../../core/recall/vocabulary.ts';
import type { RecalledProvenance, SpeakerRole } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { filesFrom } from './provenance.ts';
import { POSITIONS_PER_EXCHANGE } from './schema.ts';
import { type StoredText, textOf } from './text.ts';

/** Reads whole exchanges: their terms for ranking, their texts for quoting. */

/** Passages of each half that are read: 3,000 words. A longer text is a pasted file or a document. */
const PASSAGES_PER_RECORD = 64;

export interface Exchange extends RememberedExchange {
  /** The conversation's id and the number of the exchange in it. */
  readonly conversation: number;
  readonly number: number;
  /** Ids of its records. */
  readonly records: readonly number[];
  /** Equal for exchanges of the same words. */
  readonly words: string;
}

export interface ExchangeTexts {
  readonly asked: string;
  readonly answered: string;
  /** It is not verified that a person said `asked`. */
  readonly isUnverified: boolean;
  /** The reference of the answer, or of the request where no answer is held. */
  readonly ref: string;
  readonly space: string;
  readonly client: string;
  readonly at: number;
  /** Where it comes from, as far as that is known. */
  readonly provenance: RecalledProvenance | undefined;
}

/** Exchanges that are remembered: some 4 kB each. A project's prompts find the same ones again. */
const REMEMBERED_MAX = 512;

export class ExchangeReader {
  readonly #database: Database;
  #generation = '';
  /** By conversation and number; only those that have their answer, since nothing is added to them. */
  readonly #known = new Map<string, Exchange>();
  #vocabulary = new Vocabulary();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Numbers the words of the exchanges that were read last. */
  get vocabulary(): Vocabulary {
    return this.#vocabulary;
  }

  /** The exchanges of these passages, at most `most` of them, in the passages' order. */
  ofPassages(ids: readonly number[], most: number): Exchange[] {
    this.#dropStale();
    const places = this.#database.all<PlaceRow>(PLACES, JSON.stringify(ids), most);
    const unknown = places.filter((place) => !this.#known.has(keyOf(place)));
    const read = new Map<string, Exchange>();
    if (unknown.length > 0) {
      const rows = this.#database.all<ExchangeRow>(
        EXCHANGES,
        JSON.stringify(
          unknown.map(({ conversation, exchange, record }) => [conversation, exchange, record]),
        ),
      );
      for (const row of rows) {
        const one = exchangeOf(row, this.#vocabulary);
        read.set(keyOf(row), one);
        if (one.asked.length > 0 && one.answered.length > 0) this.#known.set(keyOf(row), one);
      }
    }
    return places.flatMap((place) => this.#known.get(keyOf(place)) ?? read.get(keyOf(place)) ?? []);
  }

  #dropStale(): void {
    const generation = this.#database.generation();
    if (generation === this.#generation && this.#known.size <= REMEMBERED_MAX) return;
    this.#generation = generation;
    this.#known.clear();
    this.#vocabulary = new Vocabulary();
  }

  /** By the exchange's place in `exchanges`; one whose records are gone has no texts. */
  texts(exchanges: readonly Pick<Exchange, 'records'>[]): (ExchangeTexts | undefined)[] {
    const ids = exchanges.flatMap(({ records }) => records);
    const rows = this.#database.all<TextRow>(TEXTS, JSON.stringify(ids));
    const byId = new Map(rows.map((row) => [row.id, row]));
    return exchanges.map(({ records }) => textsOf(records.flatMap((id) => byId.get(id) ?? [])));
  }
}

interface PlaceRow {
  readonly conversation: number;
  readonly exchange: number;
  /** One of its records. */
  readonly record: number;
}

interface ExchangeRow extends Omit<PlaceRow, 'record'> {
  readonly at: number;
  readonly branch: string | null;
  readonly lines: string;
}

interface TextRow extends StoredText {
  readonly id: number;
  readonly source: 'unverified' | null;
  readonly role: SpeakerRole;
  readonly ref: string;
  readonly space: string;
  readonly client: string;
  readonly at: number;
  readonly root: string | null;
  readonly files: string | null;
}

/** Release 0.1.2 and older kept answers in the positions that hold unverified requests now. */
const SPEAKER = `CASE p.position % ${POSITIONS_PER_EXCHANGE} / ${POSITIONS_PER_EXCHANGE / 4}
  WHEN 3 THEN 'answer' WHEN 2 THEN
    (SELECT iif(r.role = 'user', 'unverified', 'answer') FROM records r WHERE r.id = p.record)
  ELSE 'person' END`;
/** A passage's lines as one text: a row of columns costs 5 us, a line 1. Terms hold no line end. */
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
    (SELECT r.at FROM records r WHERE r.id = c.record) AS at,
    (SELECT r.branch FROM records r WHERE r.id = c.record) AS branch,
    (SELECT group_concat(line, char(10)) FROM (SELECT * FROM (${LINES(BEGIN, MIDDLE)})
      UNION ALL SELECT * FROM (${LINES(MIDDLE, LATE)})
      UNION ALL SELECT * FROM (${LINES(LATE, END)}))) AS lines
  FROM (SELECT value ->> 0 AS conversation, value ->> 1 AS exchange, value ->> 2 AS record
    FROM json_each(?)) c`;

const PLACES = `SELECT p.conversation, p.position / ${POSITIONS_PER_EXCHANGE} AS exchange,
    max(p.record) AS record, min(e.key) AS place
  FROM json_each(?) e CROSS JOIN passages p ON p.id = e.value
  GROUP BY p.conversation, p.position / ${POSITIONS_PER_EXCHANGE} ORDER BY place LIMIT ?`;

const TEXTS = `SELECT r.id, r.role, r.ref, s.name AS space, r.client, r.at, r.text, r.is_utf16,
    r.source, v.root, v.files
  FROM json_each(?) e CROSS JOIN records r ON r.id = e.value JOIN spaces s ON s.id = r.space
  LEFT JOIN provenance v ON v.record = r.id`;

function keyOf({ conversation, exchange }: Omit<PlaceRow, 'record'>): string {
  return `${conversation} ${exchange}`;
}

function exchangeOf(
  { conversation, exchange, at, branch, lines }: ExchangeRow,
  vocabulary: Vocabulary,
): Exchange {
  const asked: number[] = [];
  const answered: number[] = [];
  const records = new Set<number>();
  let answerChars = 0;
  for (const line of lines.split('\n')) {
    const [speaker, record, chars, ...terms] = line.split(' ');
    records.add(Number(record));
    if (speaker === 'answer') answerChars += Number(chars);
    // An unverified request weighs no more than an answer, and concludes nothing.
    const list = speaker === 'person' ? asked : answered;
    for (const term of terms) if (term !== '') list.push(vocabulary.numberOf(term));
  }
  return {
    conversation,
    number: exchange,
    at,
    branch: branch ?? '',
    asked: Uint32Array.from(asked),
    answered: Uint32Array.from(answered),
    answerChars,
    records: [...records],
    words: [asked.length, hashOf(asked), answered.length, hashOf(answered)].join(' '),
  };
}

/** FNV-1a over numbers. */
function hashOf(numbers: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const number of numbers) hash = Math.imul(hash ^ number, 0x01000193);
  return hash >>> 0;
}

function textsOf(rows: readonly TextRow[]): ExchangeTexts | undefined {
  const request = rows.find(({ role }) => role === 'user');
  const answer = rows.find(({ role }) => role === 'assistant');
  const main = answer ?? request;
  if (main === undefined) return undefined;
  const { ref, space, client, at } = main;
  return {
    asked: saidBy('user', rows),
    answered: saidBy('assistant', rows),
    isUnverified: rows.some(({ source }) => source === 'unverified'),
    ref,
    space,
    client,
    at,
    provenance: provenanceOf(rows),
  };
}

function provenanceOf(rows: readonly TextRow[]): RecalledProvenance | undefined {
  for (const { root, files } of rows) {
    if (root !== null && files !== null) return { root, files: filesFrom(files) };
  }
  return undefined;
}

/** Imported memories may have several texts of one role in an exchange. */
function saidBy(role: SpeakerRole, rows: readonly TextRow[]): string {
  return rows
    .filter((row) => row.role === role)
    .map((row) => textOf(row))
    .join('\n\n');
}
