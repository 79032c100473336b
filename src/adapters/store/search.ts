import type { Span } from '../../core/recall/dates.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import { type Question, readQuestion } from '../../core/recall/question.ts';
import { estimateTextTokens } from '../../core/bytes/tokens.ts';
import type { QuestionTerm, Ranked } from '../../core/recall/ranked.ts';
import { orderParts, rankCandidates } from '../../core/recall/ranking.ts';
import { keepRelevant, rarerNames, rarityOf } from '../../core/recall/relevance.ts';
import { valueOf } from '../../core/recall/term-value.ts';
import { Tally } from '../../core/bytes/tally.ts';
import type { RecallAnswer, RecalledPassage, RecallQuestion } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { Postings, POSTINGS_MAX, rangeOf, type Space, type SpacePostings } from './postings.ts';
import { ExchangeSearch, type Looked } from './exchange-search.ts';
import type { RecallMarks } from './recall-marks.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';
import type { Signals } from './signals.ts';
import { standingInstructions } from './standing.ts';
import { type StoredText, textOf } from './text.ts';
import { type Found, type Unit, UnitReader } from './units.ts';

/**
 * Recall: candidates from the full-text index of one space and of 'global', ordered and judged by
 * the core, packed into the budget. Every query is bounded by a range of ids, so that neither a
 * passage nor a word count of another space can come in.
 */

/** Each costs 30 us for what was said around it; 64 found no more on the even half of LoCoMo (74.9 %). */
const CANDIDATES_MAX = 24;
/** The assistant's words count less than the person's question: measured best at 0.6. */
const ASSISTANT_WEIGHT = 0.6;
/** The text around an agent's prompt finds candidates with less weight still. */
const AROUND_WEIGHT = 0.35;
/** With so many telling words of the person's own, the assistant's words are not needed. */
const HUMAN_RARITY_ENOUGH = 1.5;
/** Passages whose texts are read together; 512 tokens hold about 14. */
const PACKED_AT_ONCE = 16;
/** Its dash and line end; the block decides in the end what fits. */
const PASSAGE_OVERHEAD_TOKENS = 2;
/** A fifth of the block: three short sentences. */
const STANDING_TOKENS_MAX = 96;
/** Nothing that says something fits into what is left. */
const FULL_SHARE = 0.97;
/** Texts of the days that a question names, whatever their words. */
const DATED_MAX = 24;

/** The facts of the question, the same in every space. */
interface Given {
  readonly terms: readonly QuestionTerm[];
  readonly passages: number;
  /** Digests. */
  readonly excluded: readonly string[];
}

interface PackedRow extends Omit<RecalledPassage, 'score' | 'source' | 'text'>, StoredText {
  readonly source: 'unverified' | null;
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

interface ScoredPassage {
  readonly id: number;
  readonly score: number;
}

interface Context {
  readonly question: RecallQuestion;
  readonly asked: Question;
  readonly spaces: readonly Space[];
  readonly passages: number;
  readonly postings: readonly SpacePostings[];
}

export class Search {
  readonly #database: Database;
  readonly #postings: Postings;
  readonly #units: UnitReader;
  readonly #exchanges: ExchangeSearch | undefined;
  readonly #marks: RecallMarks | undefined;

  /** Without `signals` an agent's question is answered with passages, as a chat's is. */
  constructor(database: Database, signals?: Pick<Signals, 'of' | 'add'>, marks?: RecallMarks) {
    this.#database = database;
    this.#postings = new Postings(database);
    this.#units = new UnitReader(database);
    this.#marks = marks;
    this.#exchanges = signals === undefined ? undefined : new ExchangeSearch(database, signals);
  }

  /** Looks in the question's spaces and in `others`, nowhere else. */
  recall(given: RecallQuestion, others: readonly string[] = [GLOBAL_SPACE]): RecallAnswer {
    const context = this.#contextOf(given, others);
    const { question, asked, spaces, passages, postings } = context;
    if (passages === 0) return { passages: [] };
    const { agent } = question;
    if (agent !== undefined && this.#exchanges !== undefined) {
      const standing =
        agent.briefTokensMax === 0 ? [] : this.#standing(asked, spaces, question.excludeDigests);
      const looked = this.#look(postings, question.excludeDigests, passages);
      return {
        passages: standing,
        ...this.#exchanges.recall({ ...question, agent }, { ...looked, spaces, postings }),
      };
    }
    const ranked = keepRelevant(this.#rank(context), asked);
    const standing = this.#standing(asked, spaces, question.excludeDigests);
    const told = standing.reduce((sum, { text }) => sum + tokensOf(text), 0);
    const packed = this.#pack(partsOf(ranked), question.tokensMax - told);
    return { passages: [...standing, ...packed.filter((one) => !isIn(standing, one))] };
  }

  /** All that a recall weighs for a chat's question, best first, and whether it is kept. */
  weigh(given: RecallQuestion, most: number) {
    const context = this.#contextOf(given, [GLOBAL_SPACE]);
    const { isQuestion } = context.asked;
    if (context.passages === 0) return { isQuestion, passages: [] };
    const ranked = this.#rank(context);
    const kept = new Set(keepRelevant(ranked, context.asked));
    const passages = ranked.slice(0, most).flatMap((one) => {
      const [best] = partsOf([one]);
      const passage = best === undefined ? undefined : this.#texts([best]).get(best.id);
      if (passage === undefined) return [];
      return [{ ...passage, score: one.evidence.strength, isKept: kept.has(one) }];
    });
    return { isQuestion, passages };
  }

  /** The question and the part of the store that it looks at. */
  #contextOf(given: RecallQuestion, others: readonly string[]): Context {
    const spaces = this.#spaces([given.space, ...(given.olderSpaces ?? []), ...others]);
    const never = this.#marks?.never(spaces) ?? [];
    return {
      question: { ...given, excludeDigests: [...given.excludeDigests, ...never] },
      asked: readQuestion(given.humanText, given.assistantText, given.now),
      spaces,
      passages: spaces.reduce((sum, space) => sum + space.passages, 0),
      postings: spaces.map((space) => this.#postings.in(space)),
    };
  }

  #rank({ question, asked, spaces, passages, postings }: Context) {
    const terms = weigh(asked, postings, passages);
    const given = { terms, passages, excluded: question.excludeDigests };
    const found = postings.map((space) => this.#candidates(space, given));
    const units = this.#units.read({
      ids: [
        ...found.flatMap(({ ids }) => ids),
        ...spaces.flatMap((space) => this.#saidIn(space, asked.span)),
      ],
      excluded: new Set(found.flatMap(({ excluded }) => [...excluded])),
    });
    const termCount = spaces.reduce((sum, space) => sum + space.terms, 0);
    const corpus = { passages, averageTerms: termCount / passages };
    return rankCandidates({ ...asked, terms }, units, corpus);
  }

  /** The part of the index that an agent's question needs. */
  #look(
    postings: readonly SpacePostings[],
    digests: readonly string[],
    passages: number,
  ): Pick<Looked, 'passagesWith' | 'excluded'> {
    const held = postings.map(({ space }) => this.#excluded(space, digests));
    return {
      excluded: new Set(held.flatMap(({ records }) => [...records])),
      passagesWith: (terms, most) =>
        postings.flatMap((space, place) => {
          const weighed = terms.map(({ term, isOwn }) => ({
            term,
            weight: isOwn ? 1 : AROUND_WEIGHT,
            frequency: space.frequency(term),
            rarity: 0,
          }));
          return this.#best(space, weighed, {
            passages,
            places: held[place]?.places ?? new Set(),
            most,
          });
        }),
    };
  }

  /** Only for an order: a question is answered by the memories that it asks about. */
  #standing(
    { isQuestion, human }: Question,
    spaces: readonly Space[],
    excluded: readonly string[],
  ): RecalledPassage[] {
    const pinned = this.#marks?.always(spaces, excluded) ?? [];
    if (isQuestion || human.length === 0) return pinned;
    const found = standingInstructions(this.#database, spaces, excluded).filter(
      (one) => !isIn(pinned, one),
    );
    const fitting = found.filter((_, place) => {
      const tokens = found.slice(0, place + 1).reduce((sum, { text }) => sum + tokensOf(text), 0);
      return tokens <= STANDING_TOKENS_MAX;
    });
    return [...pinned, ...fitting];
  }

  /**
   * Asks about the newest record and drops the answer. The first real question then finds compiled
   * code, prepared statements and the pages of the index, and stays within its deadline.
   */
  warm(): void {
    const newest = this.#database.get<{ space: string; terms: string; at: number }>(NEWEST);
    if (newest === undefined) return;
    const { space, terms, at } = newest;
    const asked = { space, humanText: terms, assistantText: terms, excludeDigests: [] };
    this.recall({ ...asked, tokensMax: WARMING_TOKENS, now: at });
  }

  #spaces(names: readonly string[]): Space[] {
    return this.#database.all<Space>(
      `SELECT id, name, passages, terms, next FROM spaces
       WHERE name IN (SELECT value FROM json_each(?))`,
      JSON.stringify(names),
    );
  }

  /** The passages that hold most of the question, by what its terms are worth. */
  #candidates(postings: SpacePostings, given: Given): Found {
    const { records, places } = this.#excluded(postings.space, given.excluded);
    const { passages } = given;
    const ids = this.#best(postings, given.terms, { passages, places, most: CANDIDATES_MAX });
    return { ids, excluded: records };
  }

  /** Ids of passages, best first; none at one of the `places`. */
  #best(
    postings: SpacePostings,
    terms: readonly QuestionTerm[],
    given: {
      readonly passages: number;
      readonly places: ReadonlySet<number>;
      readonly most: number;
    },
  ): number[] {
    const { chosen, count, newest } = affordable(postings, terms);
    const tally = new Tally(Math.min(count, newest));
    for (const term of chosen) {
      tally.addAll(postings.places(term.term, newest), valueOf(term, given.passages));
    }
    if (tally.size === 0) return [];
    const { first } = rangeOf(postings.space);
    return tally.highest(given.most, given.places).map((place) => first + place);
  }

  /** The newest of what the person said in that time. */
  #saidIn(space: Space, span: Span | undefined): number[] {
    if (span === undefined) return [];
    return this.#database
      .all<{ id: number }>(SAID_IN, space.id, span.from, span.to)
      .map(({ id }) => id);
  }

  /** Records with these digests, and the places of their passages. */
  #excluded(space: Space, digests: readonly string[]) {
    const records = new Set<number>();
    const places = new Set<number>();
    if (digests.length > 0) {
      const { first } = rangeOf(space);
      const row = this.#database.get<{ lines: string | null }>(
        PASSAGES_OF,
        JSON.stringify(digests),
        space.id,
      );
      for (const line of row?.lines?.split('\n') ?? []) {
        const [record, id] = line.split(' ');
        records.add(Number(record));
        places.add(Number(id) - first);
      }
    }
    return { records, places };
  }

  #pack(parts: readonly ScoredPassage[], tokensMax: number): RecalledPassage[] {
    const packed: RecalledPassage[] = [];
    let tokens = 0;
    for (let at = 0; at < parts.length; at += PACKED_AT_ONCE) {
      const some = parts.slice(at, at + PACKED_AT_ONCE);
      const texts = this.#texts(some);
      for (const { id, score } of some) {
        const passage = texts.get(id);
        if (passage === undefined || isIn(packed, passage)) continue;
        const more = tokensOf(passage.text);
        // A shorter one further down may still fit.
        if (tokens + more > tokensMax) continue;
        tokens += more;
        packed.push({ ...passage, score });
      }
      if (tokens > FULL_SHARE * tokensMax) break;
    }
    return packed;
  }

  /** By passage. */
  #texts(parts: readonly ScoredPassage[]): Map<number, Omit<RecalledPassage, 'score'>> {
    const ids = parts.map(({ id }) => id);
    const rows = this.#database.all<PackedRow>(TEXTS, JSON.stringify(ids));
    return new Map(
      rows.map(({ id, start, end, text, is_utf16, source, ...record }) => [
        id,
        {
          ...record,
          text: textOf({ text, is_utf16 }).slice(start, end),
          ...(source === null ? {} : { source }),
        },
      ]),
    );
  }
}

const TEXTS = `SELECT p.id, p.start, p.end, r.ref, r.digest, s.name AS space, r.role, r.text, r.is_utf16,
    r.at, r.client, r.source
  FROM json_each(?) e CROSS JOIN passages p ON p.id = e.value
  JOIN records r ON r.id = p.record JOIN spaces s ON s.id = r.space`;

/** As many as a recall has by default. */
const WARMING_TOKENS = 512;

const NEWEST = `SELECT s.name AS space, p.terms, r.at FROM records r JOIN passages p ON p.record = r.id
  JOIN spaces s ON s.id = r.space ORDER BY r.at DESC LIMIT 1`;

const SAID_IN = `SELECT p.id FROM (SELECT id FROM records INDEXED BY records_by_time
    WHERE space = ? AND at >= ? AND at < ? AND role = 'user' ORDER BY at DESC LIMIT ${DATED_MAX}) r
  CROSS JOIN passages p ON p.record = r.id LIMIT ${DATED_MAX}`;

/** The passages of what was ranked, best first. */
function partsOf(ranked: readonly Ranked<Unit>[]): ScoredPassage[] {
  return orderParts(ranked).flatMap(({ candidate, part, score }) => {
    const id = candidate.passages[part];
    return id === undefined ? [] : [{ id, score }];
  });
}

/** Several spaces of a project may hold the same. */
function isIn(
  told: readonly RecalledPassage[],
  { digest, text }: Pick<RecalledPassage, 'digest' | 'text'>,
): boolean {
  return told.some((one) => one.digest === digest && one.text === text);
}

function tokensOf(text: string): number {
  return estimateTextTokens(text) + PASSAGE_OVERHEAD_TOKENS;
}

// CROSS JOIN keeps the order: without statistics SQLite would begin with all passages.
const PASSAGES_OF = `SELECT group_concat(r.id || ' ' || p.id, char(10)) AS lines
  FROM json_each(?) e CROSS JOIN records r ON r.space = ? AND r.digest = e.value
  CROSS JOIN passages p ON p.record = r.id`;

/** The assistant's words join only where the person's own say too little. */
function weigh(
  asked: Question,
  spaces: readonly SpacePostings[],
  passages: number,
): QuestionTerm[] {
  const weighed = (term: string, weight: number, proves: number): QuestionTerm => {
    const frequency = spaces.reduce((sum, space) => sum + space.frequency(term), 0);
    return { term, weight, frequency, rarity: proves * rarityOf(term, frequency, passages) };
  };
  for (const space of spaces) space.count([...asked.human, ...asked.humanWholes]);
  const isUnproving = (term: string): boolean =>
    asked.dateTerms.has(term) || asked.asking.has(term);
  const human = rarerNames(
    asked.human.map((term) => weighed(term, 1, isUnproving(term) ? 0 : 1)),
    asked.names,
  );
  const wholes = asked.humanWholes.map((term) => weighed(term, 1, 0));
  const rarity = human.reduce((sum, term) => sum + term.rarity, 0);
  if (rarity >= HUMAN_RARITY_ENOUGH) return [...human, ...wholes];
  for (const space of spaces) space.count(asked.assistant);
  const assistant = asked.assistant.map((term) =>
    weighed(term, ASSISTANT_WEIGHT, ASSISTANT_WEIGHT),
  );
  return [...human, ...wholes, ...assistant];
}

/** When even the rarest word is in too many passages, only the newest of them are looked at. */
function affordable(
  postings: SpacePostings,
  terms: readonly QuestionTerm[],
): { chosen: QuestionTerm[]; count: number; newest: number } {
  const counted = terms
    .map((term) => ({ term, frequency: postings.frequency(term.term) }))
    .filter(({ frequency }) => frequency > 0)
    .toSorted((a, b) => a.frequency - b.frequency);
  const chosen: QuestionTerm[] = [];
  let count = 0;
  for (const { term, frequency } of counted) {
    if (chosen.length > 0 && count + frequency > POSTINGS_MAX) break;
    chosen.push(term);
    count += frequency;
  }
  const newest = count > POSTINGS_MAX ? POSTINGS_MAX : PASSAGES_PER_SPACE;
  return { chosen, count, newest };
}
