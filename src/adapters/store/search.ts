import { type Question, readQuestion } from '../../core/question.ts';
import { passageTokens } from '../../core/passages.ts';
import { type Candidate, type QuestionTerm, rankCandidates } from '../../core/ranking.ts';
import { isRelevant, rarityOf } from '../../core/relevance.ts';
import type {
  RecallAnswer,
  RecalledPassage,
  RecallQuestion,
  RecordRole,
} from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';
import { type StoredText, textOf } from './text.ts';

/**
 * Recall: candidates from the full-text index of one space and of 'global', ordered and judged by
 * the core, packed into the budget. Every query is bounded by a range of ids, so that neither a
 * passage nor a word count of another space can come in.
 */

const GLOBAL_SPACE = 'global';
/**
 * Index entries that one question may visit: 100,000 take 124 ms, 10,000 about 5. Frequent words
 * say least, so the rarest come first and the rest is left out.
 */
const POSTINGS_MAX = 10_000;
/** Re-ordering the best 50 of the index finds what the full engine finds, within 1.2 points. */
const CANDIDATES_MAX = 64;
/** Passages whose neighbours are candidates as well: an answer need not repeat the question's words. */
const NEIGHBOURS_OF = 32;
/** Word counts that are remembered; a term is about 10 bytes. */
const FREQUENCIES_MAX = 20_000;
/** Until a space has grown by this share, its remembered word counts are near enough. */
const GROWTH_MAX = 0.1;
/** What the assistant said counts less than what the person asks: measured best at 0.6. */
const ASSISTANT_WEIGHT = 0.6;
/** With so many telling words of the person's own, the assistant's words are not needed. */
const HUMAN_RARITY_ENOUGH = 1.5;
/** Date, source and blanks around a passage in the block. */
const PASSAGE_OVERHEAD_TOKENS = 12;

interface Space {
  readonly id: number;
  readonly passages: number;
  readonly terms: number;
  readonly next: number;
}

interface PassageRow {
  readonly id: number;
  readonly record: number;
  readonly conversation: number;
  readonly position: number;
  readonly terms: string;
  readonly role: RecordRole;
  readonly at: number;
  readonly digest: string;
}

interface PackedRow extends Omit<RecalledPassage, 'score' | 'text'>, StoredText {
  readonly start: number;
  readonly end: number;
}

const PASSAGE = `SELECT p.id, p.record, p.conversation, p.position, p.terms, r.role, r.at, r.digest
  FROM passages p JOIN records r ON r.id = p.record`;

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
    const excluded = JSON.stringify(question.excludeDigests);
    const rows = spaces.flatMap((space) => this.#candidates(space, terms, excluded));
    const terms0 = spaces.reduce((sum, space) => sum + space.terms, 0);
    const ranked = rankCandidates(
      { terms, pairs: asked.pairs, asksWhen: asked.asksWhen, dates: asked.dates },
      this.#withNeighbours(rows, new Set(question.excludeDigests)),
      { passages, averageTerms: terms0 / passages },
    );
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

  #candidates(space: Space, terms: readonly QuestionTerm[], excluded: string): PassageRow[] {
    const { chosen, newest } = this.#affordable(space, terms);
    if (chosen.length === 0) return [];
    return this.#database.all<PassageRow>(
      `${PASSAGE} JOIN (
         SELECT rowid, rank FROM passage_terms
         WHERE passage_terms MATCH ? AND rowid BETWEEN ? AND ?
           AND rowid NOT IN (
             SELECT x.id FROM json_each(?) e
             JOIN records y ON y.space = ? AND y.digest = e.value
             JOIN passages x ON x.record = y.id)
         ORDER BY rank LIMIT ${CANDIDATES_MAX}
       ) f ON f.rowid = p.id ORDER BY f.rank`,
      chosen.map(quoted).join(' OR '),
      Math.max(firstId(space), lastId(space) - newest),
      lastId(space),
      excluded,
      space.id,
    );
  }

  /** When even the rarest word is in too many passages, only the newest of them are looked at. */
  #affordable(space: Space, terms: readonly QuestionTerm[]): { chosen: string[]; newest: number } {
    const counted = terms
      .map(({ term }) => ({ term, frequency: this.#frequency(space, term) }))
      .filter(({ frequency }) => frequency > 0)
      .toSorted((a, b) => a.frequency - b.frequency);
    const chosen: string[] = [];
    let postings = 0;
    for (const { term, frequency } of counted) {
      if (chosen.length > 0 && postings + frequency > POSTINGS_MAX) break;
      chosen.push(term);
      postings += frequency;
    }
    return { chosen, newest: postings > POSTINGS_MAX ? POSTINGS_MAX : PASSAGES_PER_SPACE };
  }

  #withNeighbours(rows: readonly PassageRow[], excluded: ReadonlySet<string>): Candidate[] {
    const candidates = new Map<number, Candidate>();
    const beside: Candidate[] = [];
    for (const [place, row] of rows.entries()) {
      const previous = this.#neighbour(row, 'previous');
      const next = this.#neighbour(row, 'next');
      const { terms } = candidateOf(row, '', '');
      candidates.set(row.id, candidateOf(row, previous?.terms, next?.terms));
      if (place >= NEIGHBOURS_OF) continue;
      if (previous !== undefined && !excluded.has(previous.digest)) {
        beside.push({ ...candidateOf(previous, '', ''), next: terms });
      }
      if (next !== undefined && !excluded.has(next.digest)) {
        beside.push({ ...candidateOf(next, '', ''), previous: terms });
      }
    }
    for (const one of beside) if (!candidates.has(one.id)) candidates.set(one.id, one);
    return [...candidates.values()];
  }

  #neighbour(row: PassageRow, side: 'previous' | 'next'): PassageRow | undefined {
    const [sign, order] = side === 'previous' ? ['<', 'DESC'] : ['>', 'ASC'];
    return this.#database.get<PassageRow>(
      `${PASSAGE} WHERE p.conversation = ? AND p.position ${sign} ? ORDER BY p.position ${order} LIMIT 1`,
      row.conversation,
      row.position,
    );
  }

  #pack(ranked: ReturnType<typeof rankCandidates>, tokensMax: number): RecalledPassage[] {
    const packed: RecalledPassage[] = [];
    let tokens = 0;
    for (const { id, score, evidence } of ranked) {
      if (!isRelevant(evidence)) continue;
      const passage = this.#passage(id, score);
      if (passage === undefined) continue;
      const more = Math.ceil(passageTokens(passage.text)) + PASSAGE_OVERHEAD_TOKENS;
      if (tokens + more > tokensMax) break;
      tokens += more;
      packed.push(passage);
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

function candidateOf(row: PassageRow, previous = '', next = ''): Candidate {
  const { id, record, role, at } = row;
  return {
    id,
    record,
    role,
    at,
    terms: split(row.terms),
    previous: split(previous),
    next: split(next),
  };
}

function split(terms: string): string[] {
  return terms === '' ? [] : terms.split(' ');
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
