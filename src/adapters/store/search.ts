import { GLOBAL_SPACE } from '../../core/space.ts';
import { type Question, readQuestion } from '../../core/question.ts';
import { estimateTextTokens } from '../../core/tokens.ts';
import { type QuestionTerm, rankCandidates, type Ranked, valueOf } from '../../core/ranking.ts';
import { keepRelevant, rarityOf } from '../../core/relevance.ts';
import { eachNumber, highest } from '../../core/top.ts';
import type { RecallAnswer, RecalledPassage, RecallQuestion } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';
import { type StoredText, textOf } from './text.ts';
import { type PassageRow, SELECT_PASSAGE, type Unit, UnitReader } from './units.ts';

/**
 * Recall: candidates from the full-text index of one space and of 'global', ordered and judged by
 * the core, packed into the budget. Every query is bounded by a range of ids, so that neither a
 * passage nor a word count of another space can come in.
 */

/**
 * Index entries that one question may visit; 6,000 take about 3 ms. Frequent words say least, so
 * the rarest come first and the rest is left out.
 */
const POSTINGS_MAX = 6000;
/** Each costs 50 us for what was said around it; 64 found no more on the even half of LoCoMo (74.9 %). */
const CANDIDATES_MAX = 24;
/** Word counts that are remembered; a term is about 10 bytes. */
const FREQUENCIES_MAX = 20_000;
/** A small count is cheap to take again, and a word that was said a moment ago must be found. */
const REMEMBERED_MIN = 256;
/** Until a space has grown by this share, its remembered word counts are near enough. */
const GROWTH_MAX = 0.1;
/** What the assistant said counts less than what the person asks: measured best at 0.6. */
const ASSISTANT_WEIGHT = 0.6;
/** With so many telling words of the person's own, the assistant's words are not needed. */
const HUMAN_RARITY_ENOUGH = 1.5;
/** The least that date and source of a passage take; the block decides in the end what fits. */
const PASSAGE_OVERHEAD_TOKENS = 4;

interface Space {
  readonly id: number;
  readonly passages: number;
  readonly terms: number;
  readonly next: number;
}

/** What is looked for, in every space alike. */
interface Given {
  readonly terms: readonly QuestionTerm[];
  readonly passages: number;
  /** Digests, as JSON. */
  readonly excluded: string;
}

interface PackedRow extends Omit<RecalledPassage, 'score' | 'text'>, StoredText {
  readonly start: number;
  readonly end: number;
}

export class Search {
  readonly #database: Database;
  #frequencies = new Map<string, number>();
  /** Passages of each space when its counts were taken. */
  readonly #counted = new Map<number, number>();

  constructor(database: Database) {
    this.#database = database;
  }

  recall(question: RecallQuestion): RecallAnswer {
    const spaces = this.#spaces(question.space);
    const passages = spaces.reduce((sum, space) => sum + space.passages, 0);
    const asked = readQuestion(question.humanText, question.assistantText);
    if (passages === 0) return { passages: [] };
    const terms = this.#weigh(asked, spaces, passages);
    const given = { terms, passages, excluded: JSON.stringify(question.excludeDigests) };
    const rows = spaces.flatMap((space) => this.#candidates(space, given));
    const units = new UnitReader(this.#database, new Set(question.excludeDigests)).read(rows);
    const { pairs, asksWhen, dates } = asked;
    const termCount = spaces.reduce((sum, space) => sum + space.terms, 0);
    const corpus = { passages, averageTerms: termCount / passages };
    const ranked = rankCandidates({ terms, pairs, asksWhen, dates }, units, corpus);
    return { passages: this.#pack(ranked, question.tokensMax) };
  }

  #spaces(name: string): Space[] {
    return this.#database.all<Space>(
      'SELECT id, passages, terms, next FROM spaces WHERE name IN (?, ?)',
      name,
      GLOBAL_SPACE,
    );
  }

  /** The assistant's words join only where the person's own say too little. */
  #weigh(asked: Question, spaces: readonly Space[], passages: number): QuestionTerm[] {
    const weigh = (term: string, weight: number, proves: number): QuestionTerm => {
      const frequency = spaces.reduce((sum, space) => sum + this.#frequency(space, term), 0);
      return { term, weight, frequency, rarity: proves * rarityOf(term, frequency, passages) };
    };
    const human = asked.human.map((term) => weigh(term, 1, 1));
    const wholes = asked.humanWholes.map((term) => weigh(term, 1, 0));
    const rarity = human.reduce((sum, term) => sum + term.rarity, 0);
    if (rarity >= HUMAN_RARITY_ENOUGH) return [...human, ...wholes];
    const assistant = asked.assistant.map((term) =>
      weigh(term, ASSISTANT_WEIGHT, ASSISTANT_WEIGHT),
    );
    return [...human, ...wholes, ...assistant];
  }

  #frequency(space: Space, term: string): number {
    this.#forgetOldCounts(space);
    const key = `${space.id} ${term}`;
    const known = this.#frequencies.get(key);
    if (known !== undefined) return known;
    // Above the budget a count makes no difference: the term is left out.
    const row = this.#database.get<{ found: number }>(
      `SELECT count(*) AS found FROM (SELECT rowid FROM passage_terms
        WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ? LIMIT ${POSTINGS_MAX + 1})`,
      quoted(term),
      firstId(space),
      lastId(space),
    );
    const frequency = row?.found ?? 0;
    if (frequency < REMEMBERED_MIN) return frequency;
    if (this.#frequencies.size >= FREQUENCIES_MAX) this.#frequencies.clear();
    this.#frequencies.set(key, frequency);
    return frequency;
  }

  #forgetOldCounts(space: Space): void {
    const counted = this.#counted.get(space.id);
    if (counted !== undefined && Math.abs(space.passages - counted) <= counted * GROWTH_MAX) return;
    if (counted !== undefined) this.#frequencies = new Map();
    this.#counted.set(space.id, space.passages);
  }

  /** The passages that hold most of the question, by what its terms are worth. */
  #candidates(space: Space, given: Given): PassageRow[] {
    const values = new Map<number, number>();
    const { chosen, newest } = this.#affordable(space, given.terms);
    const from = Math.max(firstId(space), lastId(space) - newest);
    for (const term of chosen) {
      const value = valueOf(term, given.passages);
      eachNumber(this.#holders(term.term, from, lastId(space)), (place) => {
        values.set(place, (values.get(place) ?? 0) + value);
      });
    }
    for (const id of this.#passagesOf(space, given.excluded)) values.delete(id - from);
    const best = highest(values, CANDIDATES_MAX).map((place) => place + from);
    const rows = this.#database.all<PassageRow>(
      `${SELECT_PASSAGE} WHERE p.id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(best),
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return best.flatMap((id) => byId.get(id) ?? []);
  }

  // A number above 2^31 may be bound as a real, and then the text would say "12.0".
  /** As one text, counted from `from`: 10,000 rows cost 10 ms one by one, 1 ms together. */
  #holders(term: string, from: number, to: number): string {
    const row = this.#database.get<{ places: string | null }>(
      `SELECT group_concat(rowid - CAST(? AS INTEGER)) AS places FROM passage_terms
       WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ?`,
      from,
      quoted(term),
      from,
      to,
    );
    return row?.places ?? '';
  }

  // CROSS JOIN keeps the order: without statistics SQLite would begin with all passages.
  #passagesOf(space: Space, digests: string): number[] {
    return this.#database
      .all<{ id: number }>(
        `SELECT p.id FROM json_each(?) e CROSS JOIN records r ON r.space = ? AND r.digest = e.value
         CROSS JOIN passages p ON p.record = r.id`,
        digests,
        space.id,
      )
      .map(({ id }) => id);
  }

  /** When even the rarest word is in too many passages, only the newest of them are looked at. */
  #affordable(
    space: Space,
    terms: readonly QuestionTerm[],
  ): { chosen: QuestionTerm[]; newest: number } {
    const counted = terms
      .map((term) => ({ term, frequency: this.#frequency(space, term.term) }))
      .filter(({ frequency }) => frequency > 0)
      .toSorted((a, b) => a.frequency - b.frequency);
    const chosen: QuestionTerm[] = [];
    let postings = 0;
    for (const { term, frequency } of counted) {
      if (chosen.length > 0 && postings + frequency > POSTINGS_MAX) break;
      chosen.push(term);
      postings += frequency;
    }
    return { chosen, newest: postings > POSTINGS_MAX ? POSTINGS_MAX : PASSAGES_PER_SPACE };
  }

  #pack(ranked: readonly Ranked<Unit>[], tokensMax: number): RecalledPassage[] {
    const packed: RecalledPassage[] = [];
    let tokens = 0;
    for (const { candidate, score } of keepRelevant(ranked)) {
      const passages = candidate.passages.flatMap((id) => this.#passage(id, score) ?? []);
      for (const { text } of passages) {
        tokens += estimateTextTokens(text) + PASSAGE_OVERHEAD_TOKENS;
      }
      if (tokens > tokensMax) break;
      packed.push(...passages);
    }
    return packed;
  }

  #passage(id: number, score: number): RecalledPassage | undefined {
    const row = this.#database.get<PackedRow>(
      `SELECT r.ref, r.digest, s.name AS space, r.role, r.text, r.is_utf16, r.at, r.client, p.start, p.end
       FROM passages p JOIN records r ON r.id = p.record JOIN spaces s ON s.id = r.space
       WHERE p.id = ?`,
      id,
    );
    if (row === undefined) return undefined;
    const { start, end, text, is_utf16, ...record } = row;
    return { ...record, text: textOf({ text, is_utf16 }).slice(start, end), score };
  }
}

function firstId(space: Space): number {
  return space.id * PASSAGES_PER_SPACE;
}

function lastId(space: Space): number {
  return firstId(space) + space.next;
}

function quoted(term: string): string {
  return `"${term}"`;
}
