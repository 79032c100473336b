import type { AgentLook } from '../../core/recall/agent-facts.ts';
import type { Span } from '../../core/recall/dates.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import { type Question, readQuestion } from '../../core/recall/question.ts';
import type { QuestionTerm, Ranked, Candidate } from '../../core/recall/ranked.ts';
import { rankCandidates, orderParts } from '../../core/recall/ranking.ts';
import { keepRelevant, rarerNames, rarityOf } from '../../core/recall/relevance.ts';
import { rulesFor, type Situation } from '../../core/recall/rules-in-force.ts';
import { textOfAction } from '../../core/recall/second-look.ts';
import { valueOf } from '../../core/recall/term-value.ts';
import { termsOf } from '../../core/recall/terms.ts';
import { Tally } from '../../core/bytes/tally.ts';
import type { RuleMark } from '../../core/memory/record.ts';
import type { RecallAnswer, RecalledPassage, RecallQuestion } from '../../ports/memory.ts';
import { Postings, POSTINGS_MAX, type SpacePostings } from './postings.ts';
import { ExchangeSearch, type Looked, type SharedSignals } from './exchange-search.ts';
import { lineTokens, NO_MARKS, type RecallMarks, readRules, ruleDigest } from './recall-marks.ts';
import {
  NO_PLACES,
  type RecallSource,
  type Space,
  type Passage,
  type Window,
} from './recall-source.ts';
import { PASSAGES_PER_SPACE, POSITIONS_PER_EXCHANGE } from './schema.ts';
import { done, type Steps, together } from './steps.ts';
import { onlyAsks } from '../../core/recall/sentences.ts';

/**
 * Recalls memories. For a chat it finds candidates in the question's spaces and in 'global', lets the core rank them,
 * and returns the best within the token limit. For an agent it uses ExchangeSearch. It reads memories only through
 * RecallSource and RecallMarks, so it works with any database.
 */

/**
 * Bound on candidates of a space, at 30 us each. On the even-numbered half of the benchmark LoCoMo, 64 candidates found
 * no more answers than 24 did (74.9 %).
 */
const CANDIDATES_MAX = 24;
/** Weight of the assistant's words, relative to the user's question; 0.6 was the best value in measurements. */
const ASSISTANT_WEIGHT = 0.6;
/** Weight of a word of the assistant's last text when candidates for an agent are found; a word of the prompt has 1. */
const AROUND_WEIGHT = 0.35;
/** Sum of the rarity of the user's words (see rarityOf) from which the assistant's words are not searched. */
const HUMAN_RARITY_ENOUGH = 1.5;
/** Bound on the tokens of rules in a recall: seven to ten short sentences. Pinned rules count, and may exceed it. */
const RULES_TOKENS_MAX = 200;
/** Bound on passages that are found because the user wrote them on a day that the question names. */
const DATED_MAX = 24;

interface Context {
  readonly question: RecallQuestion;
  /**
   * Analyses the question at its first call. For an agent it is called only by a source that stores hashes of terms
   * (expectTerms), because it takes longer than an agent's whole recall.
   */
  readonly asked: () => Question;
  readonly spaces: readonly Space[];
  readonly passages: number;
  readonly postings: readonly SpacePostings[];
}

/** The records that must not be recalled (see Looked.excluded), and the numbers of their passages. */
interface Excluded {
  readonly records: ReadonlySet<number>;
  readonly places: ReadonlySet<number>;
}

interface WeighedPassage extends RecalledPassage {
  readonly isKept: boolean;
}

export interface Weighed {
  readonly isQuestion: boolean;
  readonly passages: readonly WeighedPassage[];
}

export class Search {
  readonly #source: RecallSource;
  readonly #postings: Postings;
  readonly #units: UnitReader;
  readonly #exchanges: ExchangeSearch | undefined;
  readonly #marks: RecallMarks | undefined;

  /** Without `signals`, an agent's question gets passages like a chat's. */
  constructor(source: RecallSource, signals?: SharedSignals, marks?: RecallMarks) {
    this.#source = source;
    this.#postings = new Postings(source);
    this.#units = new UnitReader(source);
    this.#marks = marks;
    this.#exchanges = signals === undefined ? undefined : new ExchangeSearch(source, signals);
  }

  /**
   * Searches the question's spaces and `others`. `explain`: called with the facts about a recall for an agent's prompt,
   * if the spaces have memories.
   */
  *recall(
    given: RecallQuestion,
    others: readonly string[] = [GLOBAL_SPACE],
    explain?: (look: AgentLook) => void,
  ): Steps<RecallAnswer> {
    const context = yield* this.#contextOf(given, others);
    const { question, asked, spaces, passages, postings } = context;
    if (passages === 0) return { passages: [] };
    const { agent } = question;
    if (agent?.action !== undefined && this.#exchanges !== undefined) {
      const looked = yield* this.#look(postings, question.excludeDigests, passages);
      const found = { ...looked, spaces, postings };
      const [told, rules] = yield* together([
        this.#exchanges.look({ ...question, agent }, agent.action, found),
        this.#rules(context, { text: textOfAction(agent.action), kind: 'action' }),
      ]);
      return { passages: rules, ...told };
    }
    if (agent !== undefined && this.#exchanges !== undefined) {
      const [standing, looked] = yield* together([
        this.#rules(context, { text: given.humanText, kind: 'prompt' }),
        this.#look(postings, question.excludeDigests, passages),
      ]);
      const told = { ...looked, spaces, postings };
      const found = yield* this.#exchanges.recall({ ...question, agent }, told, explain);
      return { passages: standing, ...found };
    }
    const [weighed, standing] = yield* together([
      this.#rank(context),
      this.#rules(context, { text: given.humanText, kind: 'prompt' }),
    ]);
    const ranked = keepRelevant(weighed, asked());
    const told = standing.reduce((sum, { text }) => sum + lineTokens(text), 0);
    const packed = yield* pack(this.#source, partsOf(ranked), question.tokensMax - told);
    return { passages: [...standing, ...packed.filter((one) => !isIn(standing, one))] };
  }

  /** Returns the best candidates for a chat's question, best first, and says which of them are relevant enough. */
  *weigh(given: RecallQuestion, most: number): Steps<Weighed> {
    const context = yield* this.#contextOf(given, [GLOBAL_SPACE]);
    const { isQuestion } = context.asked();
    if (context.passages === 0) return { isQuestion, passages: [] };
    const ranked = yield* this.#rank(context);
    const kept = new Set(keepRelevant(ranked, context.asked()));
    const passages: WeighedPassage[] = [];
    for (const one of ranked.slice(0, most)) {
      const [best] = partsOf([one]);
      const texts = best === undefined ? undefined : yield* this.#source.texts([best.id]);
      const passage = best === undefined ? undefined : texts?.get(best.id);
      if (passage === undefined) continue;
      passages.push({ ...passage, score: one.evidence.strength, isKept: kept.has(one) });
    }
    return { isQuestion, passages };
  }

  /** Returns the facts about the question's spaces that a recall for a chat and one for an agent both need. */
  *#contextOf(given: RecallQuestion, others: readonly string[]): Steps<Context> {
    const names = [given.space, ...(given.olderSpaces ?? []), ...others];
    const found = yield* this.#source.spaces(names);
    // Sort the spaces, so that their order is the same on every database.
    const spaces = found.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const never = this.#marks?.never(spaces) ?? [];
    let read: Question | undefined;
    const asked = (): Question =>
      (read ??= readQuestion(given.humanText, given.assistantText, given.now));
    this.#source.expectTerms(() => lettersOf(asked(), given));
    const postings: SpacePostings[] = [];
    for (const space of spaces) postings.push(yield* this.#postings.in(space));
    return {
      question: { ...given, excludeDigests: [...given.excludeDigests, ...never] },
      asked,
      spaces,
      passages: spaces.reduce((sum, space) => sum + space.passages, 0),
      postings,
    };
  }

  *#rank({ question, spaces, passages, postings, ...context }: Context): Steps<Ranked<Unit>[]> {
    const asked = context.asked();
    const [terms, held, dated] = yield* together([
      weigh(asked, postings, passages),
      together(postings.map((space) => this.#excluded(space, question.excludeDigests))),
      together(spaces.map((space) => this.#saidIn(space, asked.span))),
    ]);
    // The passages with the most terms of the question, weighted by the value of each term.
    const found = yield* together(
      postings.map((space, at) =>
        this.#best(space, terms, {
          passages,
          places: held[at]?.places ?? new Set(),
          most: CANDIDATES_MAX,
        }),
      ),
    );
    const excluded = new Set(held.flatMap(({ records }) => [...records]));
    const units = yield* this.#units.read({ ids: [...found, ...dated].flat(), excluded });
    const termCount = spaces.reduce((sum, space) => sum + space.terms, 0);
    const corpus = { passages, averageTerms: termCount / passages };
    return rankCandidates({ ...asked, terms }, units, corpus);
  }

  /** Returns what an agent's question needs of the index: the excluded records, and a search for passages. */
  *#look(
    postings: readonly SpacePostings[],
    digests: readonly string[],
    passages: number,
  ): Steps<Pick<Looked, 'passagesWith' | 'excluded'>> {
    const held = yield* together(postings.map((space) => this.#excluded(space, digests)));
    const best = this.#best.bind(this);
    return {
      excluded: new Set(held.flatMap(({ records }) => [...records])),
      *passagesWith(terms, most) {
        const found = postings.map((space, at) => {
          const weighed = terms.map(({ term, isOwn }) => ({
            term,
            weight: isOwn ? 1 : AROUND_WEIGHT,
            frequency: space.frequency(term),
            rarity: 0,
          }));
          const places = held[at]?.places ?? new Set();
          return best(space, weighed, { passages, places, most });
        });
        return (yield* together(found)).flat();
      },
    };
  }

  /**
   * Returns the rules that apply to the situation. At a prompt it also returns the memories and rules that the user has
   * pinned.
   */
  *#rules({ question, spaces }: Context, situation: Situation): Steps<RecalledPassage[]> {
    const { excludeDigests } = question;
    const pinned =
      situation.kind === 'prompt' ? (this.#marks?.always(spaces, excludeDigests) ?? []) : [];
    const said = yield* readRules(this.#source, spaces, excludeDigests);
    const marks = this.#marks?.rules(spaces) ?? NO_MARKS;
    const marked =
      (mark: RuleMark) =>
      ({ text }: RecalledPassage) =>
        marks.get(ruleDigest(text)) === mark;
    const held = said.filter((rule) => !marked('retired')(rule) && !isIn(pinned, rule));
    const always = situation.kind === 'prompt' ? held.filter(marked('pinned')) : [];
    const others = held.filter((rule) => !always.includes(rule));
    const tokens = always.reduce((sum, { text }) => sum + lineTokens(text), 0);
    return [...pinned, ...always, ...rulesFor(others, situation, RULES_TOKENS_MAX - tokens)];
  }

  /**
   * Returns ids of at most `most` passages, without those with the numbers `places`. Passages whose terms have the
   * highest total value come first; only the terms that affordable() chooses count.
   */
  *#best(
    postings: SpacePostings,
    terms: readonly QuestionTerm[],
    given: {
      readonly passages: number;
      readonly places: ReadonlySet<number>;
      readonly most: number;
    },
  ): Steps<number[]> {
    const { chosen, count, newest } = affordable(postings, terms);
    const tally = new Tally(Math.min(count, newest));
    const names = chosen.map(({ term }) => term);
    const places = yield* postings.places(names, newest);
    for (const [place, term] of chosen.entries()) {
      tally.addAll(places[place] ?? NO_PLACES, valueOf(term, given.passages));
    }
    if (tally.size === 0) return [];
    const first = postings.space.id * PASSAGES_PER_SPACE;
    return tally.highest(given.most, given.places).map((place) => first + place);
  }

  /** Returns ids of the newest passages that the user wrote within the period; none if there is no period. */
  #saidIn(space: Space, span: Span | undefined): Steps<readonly number[]> {
    return span === undefined ? done([]) : this.#source.saidIn(space, span, DATED_MAX);
  }

  *#excluded(postings: SpacePostings, digests: readonly string[]): Steps<Excluded> {
    const records = new Set<number>();
    const places = new Set<number>();
    const first = postings.space.id * PASSAGES_PER_SPACE;
    for (const { record, passage } of yield* postings.passagesOf(digests)) {
      records.add(record);
      places.add(passage - first);
    }
    return { records, places };
  }
}

/** Returns the terms whose spelling the ranking compares; see RecallSource.expectTerms. */
function lettersOf(asked: Question, given: RecallQuestion): Set<string> {
  const pairs = [...asked.pairs].flatMap((pair) => pair.split(' '));
  const agent = given.agent === undefined ? [] : termsOf(given.humanText);
  const around = given.agent === undefined ? asked.assistant : termsOf(given.assistantText);
  return new Set([...asked.human, ...asked.humanWholes, ...pairs, ...agent, ...around]);
}

/** Weighs the terms of a question. The assistant's words are added only if the user's own are too common. */
function* weigh(
  asked: Question,
  spaces: readonly SpacePostings[],
  passages: number,
): Steps<QuestionTerm[]> {
  const weighed = (term: string, weight: number, proves: number): QuestionTerm => {
    const frequency = spaces.reduce((sum, space) => sum + space.frequency(term), 0);
    return { term, weight, frequency, rarity: proves * rarityOf(term, frequency, passages) };
  };
  yield* together(spaces.map((space) => space.count([...asked.human, ...asked.humanWholes])));
  const isUnproving = (term: string): boolean =>
    asked.dateTerms.has(term) || asked.asking.has(term);
  const human = rarerNames(
    asked.human.map((term) => weighed(term, 1, isUnproving(term) ? 0 : 1)),
    asked.names,
  );
  const wholes = asked.humanWholes.map((term) => weighed(term, 1, 0));
  const rarity = human.reduce((sum, term) => sum + term.rarity, 0);
  if (rarity >= HUMAN_RARITY_ENOUGH) return [...human, ...wholes];
  yield* together(spaces.map((space) => space.count(asked.assistant)));
  const assistant = asked.assistant.map((term) =>
    weighed(term, ASSISTANT_WEIGHT, ASSISTANT_WEIGHT),
  );
  return [...human, ...wholes, ...assistant];
}

/**
 * Chooses the rarest of the terms that the space has: as many as together have at most POSTINGS_MAX passages, and the
 * rarest in any case. `count`: the sum of their numbers of passages. `newest`: how many of the space's newest passages
 * are searched: all, or POSTINGS_MAX if even the rarest term has more.
 */
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

/** Passages whose texts are read together. A block of 512 tokens has about 14. */
const PACKED_AT_ONCE = 16;
/** Share of the token limit from which no further group is read, because hardly any passage fits into the rest. */
const FULL_SHARE = 0.97;

interface ScoredPassage {
  readonly id: number;
  readonly score: number;
  /** The id of the passage that answers this one; undefined if there is none. */
  readonly answer: number | undefined;
}

type Text = Omit<RecalledPassage, 'score'>;

/** Returns the passages of ranked results, best first. */
function partsOf(ranked: readonly Ranked<Unit>[]): ScoredPassage[] {
  return orderParts(ranked).flatMap(({ candidate, part, score }) => {
    const id = candidate.passages[part];
    const answer = candidate.passages[part + 1] ?? candidate.answer;
    return id === undefined ? [] : [{ id, score, answer }];
  });
}

/**
 * Reads the texts of ranked passages and returns the best that fit the limit. See togetherWith() for a passage that
 * only asks something.
 */
function* pack(
  source: Pick<RecallSource, 'texts'>,
  parts: readonly ScoredPassage[],
  tokensMax: number,
): Steps<RecalledPassage[]> {
  const packed = new Map<number, RecalledPassage>();
  let tokens = 0;
  for (let at = 0; at < parts.length; at += PACKED_AT_ONCE) {
    const some = parts.slice(at, at + PACKED_AT_ONCE);
    const texts = new Map(yield* source.texts(some.map(({ id }) => id)));
    // Read the answers of the passages that only ask.
    const answers = some.flatMap(({ id, answer }) =>
      answer === undefined || texts.has(answer) || !needsAnswer(texts.get(id)) ? [] : [answer],
    );
    const answered = answers.length === 0 ? [] : yield* source.texts(answers);
    for (const [id, text] of answered) texts.set(id, text);
    for (const part of some) {
      const fresh = togetherWith(part, texts).filter(
        ({ id, text }) => !packed.has(id) && !isIn([...packed.values()], text),
      );
      const more = fresh.reduce((sum, { text }) => sum + lineTokens(text.text), 0);
      // Skip only this passage: a shorter one further down may fit.
      if (fresh.length === 0 || tokens + more > tokensMax) continue;
      tokens += more;
      for (const { id, text } of fresh) packed.set(id, { ...text, score: part.score });
    }
    if (tokens > FULL_SHARE * tokensMax) break;
  }
  return [...packed.values()];
}

/**
 * Returns a passage. If it only asks something, returns the assistant's answer too, or nothing if there is no answer.
 * An answer with the role 'user' is left out.
 */
function togetherWith(
  { id, answer }: ScoredPassage,
  texts: ReadonlyMap<number, Text>,
): { readonly id: number; readonly text: Text }[] {
  const text = texts.get(id);
  if (text === undefined) return [];
  if (!needsAnswer(text)) return [{ id, text }];
  const answered = answer === undefined ? undefined : texts.get(answer);
  if (answer === undefined || answered === undefined) return [];
  // In a conversation between people the answer has the role 'user' too. Then return the question without it.
  if (answered.role === 'user') return [{ id, text }];
  return [
    { id, text },
    { id: answer, text: answered },
  ];
}

function needsAnswer(text: Text | undefined): boolean {
  return text?.role === 'user' && onlyAsks(text.text);
}

/** Says whether the same text is already chosen, for example from another space of the project. */
function isIn(
  told: readonly RecalledPassage[],
  { digest, text }: Pick<RecalledPassage, 'digest' | 'text'>,
): boolean {
  return told.some((one) => one.digest === digest && one.text === text);
}

/** Bound on the best passages whose neighbours become candidates too: an answer may share no word with its question. */
const NEIGHBOURS_OF = 12;
/** Neighbours of a passage that are read on each side: two units of at most two passages. */
const SAID_MAX = 4;
/**
 * Bound on the tokens of a question and its answer that are ranked and shown as one unit. On the even half of LoCoMo,
 * blocks contain 0.4 % fewer answers with a bound of 96, and 0.9 % fewer with 200.
 */
const UNIT_TOKENS_MAX = 128;
/** Characters of a token in ASCII text, to estimate the tokens of a passage from its length. */
const CHARS_PER_TOKEN = 3.6;

/** What the ranking ranks: one passage, or a short question with its short answer, as neither says much alone. */
interface Unit extends Candidate {
  /** Ids of its passages in order; the first is the unit's id. */
  readonly passages: readonly number[];
  /** The id of the first passage of the next record in the exchange; undefined if there is none or it is excluded. */
  readonly answer: number | undefined;
}

interface Found {
  /** Ids of passages, best first. */
  readonly ids: readonly number[];
  /** Records whose passages may not be part of a unit. */
  readonly excluded: ReadonlySet<number>;
}

/**
 * Bound on cached passages, about 2 kB each with their terms. The questions of a project find the same passages again,
 * and reading them takes a fifth of a recall.
 */
const PASSAGES_MAX = 4096;

/** Reads units. It caches their passages as long as no text can have been deleted. */
class UnitReader {
  readonly #source: RecallSource;
  #generation: string | undefined;
  readonly #passages = new Map<number, Passage>();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /**
   * Returns the units of these passages, and then the units next to the first NEIGHBOURS_OF of them. Each passage is in
   * at most one unit.
   */
  *read({ ids, excluded }: Found): Steps<Unit[]> {
    this.#dropStale();
    const windows = yield* this.#source.windows(ids, SAID_MAX);
    yield* this.#readPassages(windows);
    const maker = new UnitMaker(excluded);
    const beside: (() => void)[] = [];
    for (const [place, { id, around }] of windows.entries()) {
      const own = this.#passages.get(id);
      if (own === undefined || !maker.isFree(own)) continue;
      const said = around.flatMap((one) => this.#passages.get(one) ?? []);
      const { first, last } = maker.makeAt(said, said.indexOf(own));
      if (place >= NEIGHBOURS_OF) continue;
      beside.push(() => maker.makeBeside(said, first - 1));
      beside.push(() => maker.makeBeside(said, last + 1));
    }
    for (const make of beside) make();
    return yield* this.#withTimes(maker.drafts);
  }

  /** Empties the cache if a cached text may have been deleted, or if the cache is full. */
  #dropStale(): void {
    const generation = this.#source.generation();
    const isFull = this.#passages.size > PASSAGES_MAX;
    if (generation !== undefined && generation === this.#generation && !isFull) return;
    this.#generation = generation;
    this.#passages.clear();
  }

  *#readPassages(windows: readonly Window[]): Steps<void> {
    const ids = new Set<number>();
    for (const { around } of windows) {
      for (const id of around) if (!this.#passages.has(id)) ids.add(id);
    }
    if (ids.size === 0) return;
    const passages = yield* this.#source.passages([...ids]);
    for (const passage of passages) this.#passages.set(passage.id, passage);
  }

  *#withTimes(drafts: readonly Draft[]): Steps<Unit[]> {
    const records = [...new Set(drafts.map(({ record }) => record))];
    const read = yield* this.#source.timesOf(records);
    const times = new Map(records.map((record, place) => [record, read[place]]));
    return drafts.map((draft) => ({ ...draft, at: times.get(draft.record) ?? 0 }));
  }
}

type Draft = Omit<Unit, 'at'>;

interface Around extends Pick<Unit, 'answer' | 'earlier' | 'previous' | 'next' | 'later'> {
  /** Says whether the passage is part of an answer of several passages. */
  readonly isOfLongAnswer: (passage: Passage) => boolean;
}

class UnitMaker {
  readonly #excluded: ReadonlySet<number>;
  readonly #drafts: Draft[] = [];
  readonly #taken = new Set<number>();
  /** The terms of units with two passages, by the id of the first passage. */
  readonly #joined = new Map<number, readonly string[]>();

  constructor(excluded: ReadonlySet<number>) {
    this.#excluded = excluded;
  }

  get drafts(): readonly Draft[] {
    return this.#drafts;
  }

  makeBeside(said: readonly Passage[], at: number): void {
    const passage = said[at];
    if (passage !== undefined && this.isFree(passage)) this.makeAt(said, at);
  }

  /** Makes the unit of the passage at an index. Returns the indexes of its first and last passage. */
  makeAt(said: readonly Passage[], at: number): Range {
    const { first, last } = rangeAt(said, at);
    const isWhole = said.slice(first, last + 1).every((one) => this.isFree(one));
    const range = isWhole ? { first, last } : { first: at, last: at };
    const before = rangeAt(said, range.first - 1);
    const after = rangeAt(said, range.last + 1);
    this.#add(said.slice(range.first, range.last + 1), {
      isOfLongAnswer: (passage) =>
        !isUsers(passage) && said.some((one) => one !== passage && one.record === passage.record),
      answer: this.#answerTo(said, range.last),
      earlier: this.#termsAt(said, before.first - 1),
      previous: this.#termsAt(said, range.first - 1),
      next: this.#termsAt(said, range.last + 1),
      later: this.#termsAt(said, after.last + 1),
    });
    return range;
  }

  isFree({ id, record }: Passage): boolean {
    return !this.#taken.has(id) && !this.#excluded.has(record);
  }

  #add(parts: readonly Passage[], { isOfLongAnswer, ...around }: Around): void {
    const [first] = parts;
    if (first === undefined) return;
    const { id, record } = first;
    const passages = parts.map((part) => part.id);
    for (const passage of passages) this.#taken.add(passage);
    this.#drafts.push({
      id,
      record,
      passages,
      role: parts.some(isUsers) ? 'user' : 'assistant',
      isOfLongAnswer: parts.some(isOfLongAnswer),
      terms: this.#termsOf(parts),
      parts: parts.map((part) => ({
        role: isUsers(part) ? 'user' : 'assistant',
        isOfLongAnswer: isOfLongAnswer(part),
        terms: part.terms,
      })),
      ...around,
    });
  }

  #answerTo(said: readonly Passage[], at: number): number | undefined {
    const asked = said[at];
    if (asked === undefined) return undefined;
    const next = said.slice(at + 1).find(({ record }) => record !== asked.record);
    if (next === undefined || exchangeOf(next) !== exchangeOf(asked)) return undefined;
    return this.#excluded.has(next.record) ? undefined : next.id;
  }

  #termsAt(said: readonly Passage[], at: number): readonly string[] {
    if (said[at] === undefined) return [];
    const { first, last } = rangeAt(said, at);
    return this.#termsOf(said.slice(first, last + 1));
  }

  #termsOf(parts: readonly Passage[]): readonly string[] {
    const [first, second] = parts;
    if (first === undefined) return [];
    if (second === undefined) return first.terms;
    // Return the same list for the same unit, so that the ranking counts its words only once.
    const known = this.#joined.get(first.id);
    if (known !== undefined) return known;
    const made = first.terms.concat(second.terms);
    this.#joined.set(first.id, made);
    return made;
  }
}

interface Range {
  readonly first: number;
  readonly last: number;
}

/**
 * Returns the range of a passage's unit: the passage with the following one if that belongs to it, or else with the
 * preceding one if that does, or else alone.
 */
function rangeAt(said: readonly Passage[], at: number): Range {
  const [previous, passage, next] = [said[at - 1], said[at], said[at + 1]];
  if (passage === undefined) return { first: at, last: at };
  if (next !== undefined && belong(passage, next)) return { first: at, last: at + 1 };
  if (previous !== undefined && belong(previous, passage)) return { first: at - 1, last: at };
  return { first: at, last: at };
}

function belong(one: Passage, other: Passage): boolean {
  return (
    exchangeOf(one) === exchangeOf(other) &&
    one.record !== other.record &&
    one.chars + other.chars <= UNIT_TOKENS_MAX * CHARS_PER_TOKEN
  );
}

function exchangeOf({ position }: Passage): number {
  return Math.floor(position / POSITIONS_PER_EXCHANGE);
}

/**
 * Says whether a passage is part of a text that is certainly the user's. The passages of such a text have the positions
 * in the first half of their exchange (see POSITIONS_PER_EXCHANGE).
 */
function isUsers({ position }: Passage): boolean {
  return position % POSITIONS_PER_EXCHANGE < POSITIONS_PER_EXCHANGE / 2;
}
