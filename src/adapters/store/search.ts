import type { AgentLook } from '../../core/recall/agent-facts.ts';
import type { Span } from '../../core/recall/dates.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import { type Question, readQuestion } from '../../core/recall/question.ts';
import type { QuestionTerm, Ranked } from '../../core/recall/ranked.ts';
import { rankCandidates } from '../../core/recall/ranking.ts';
import { keepRelevant, rarerNames, rarityOf } from '../../core/recall/relevance.ts';
import { rulesFor, type Situation } from '../../core/recall/rules-in-force.ts';
import { textOfAction } from '../../core/recall/second-look.ts';
import { valueOf } from '../../core/recall/term-value.ts';
import { termsOf } from '../../core/recall/terms.ts';
import { Tally } from '../../core/bytes/tally.ts';
import type { RecallAnswer, RecalledPassage, RecallQuestion } from '../../ports/memory.ts';
import { isIn, pack, partsOf, tokensOf } from './packing.ts';
import { Postings, POSTINGS_MAX, type SpacePostings } from './postings.ts';
import { ExchangeSearch, type Looked, type SharedSignals } from './exchange-search.ts';
import type { RecallMarks } from './recall-marks.ts';
import { readRules, ruleDigest, type RuleMark, type RuleMarks } from './rules.ts';
import { NO_PLACES, type RecallSource, type Space } from './recall-source.ts';
import { PASSAGES_PER_SPACE } from './schema.ts';
import { done, type Steps, together } from './steps.ts';
import { type Unit, UnitReader } from './units.ts';

/**
 * Recall: candidates of one space and of 'global', ordered and judged by the core, packed into the
 * budget. The source reads; nothing here knows which database it is.
 */

/** Each costs 30 us for what was said around it; 64 found no more on the even half of LoCoMo (74.9 %). */
const CANDIDATES_MAX = 24;
/** The assistant's words count less than the person's question: measured best at 0.6. */
const ASSISTANT_WEIGHT = 0.6;
/** The text around an agent's prompt finds candidates with less weight still. */
const AROUND_WEIGHT = 0.35;
/** With so many telling words of the person's own, the assistant's words are not needed. */
const HUMAN_RARITY_ENOUGH = 1.5;
/** Seven to ten short sentences. */
const RULES_TOKENS_MAX = 200;
/** Texts of the days that a question names, whatever their words. */
const DATED_MAX = 24;

const NO_MARKS: RuleMarks = new Map();

interface Context {
  readonly question: RecallQuestion;
  /** To read it takes longer than an agent's recall does without it. */
  readonly asked: () => Question;
  readonly spaces: readonly Space[];
  readonly passages: number;
  readonly postings: readonly SpacePostings[];
}

/** Records that the client has in its prompt. */
interface Excluded {
  readonly records: ReadonlySet<number>;
  readonly places: ReadonlySet<number>;
}

export interface WeighedPassage extends RecalledPassage {
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

  /** Without `signals` an agent's question is answered with passages, as a chat's is. */
  constructor(source: RecallSource, signals?: SharedSignals, marks?: RecallMarks) {
    this.#source = source;
    this.#postings = new Postings(source);
    this.#units = new UnitReader(source);
    this.#marks = marks;
    this.#exchanges = signals === undefined ? undefined : new ExchangeSearch(source, signals);
  }

  /** Looks in the question's spaces and in `others`, nowhere else. */
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
    const told = standing.reduce((sum, { text }) => sum + tokensOf(text), 0);
    const packed = yield* pack(this.#source, partsOf(ranked), question.tokensMax - told);
    return { passages: [...standing, ...packed.filter((one) => !isIn(standing, one))] };
  }

  /** All that a recall weighs for a chat's question, best first, and whether it is kept. */
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

  /** The question and the part of the store that it looks at. */
  *#contextOf(given: RecallQuestion, others: readonly string[]): Steps<Context> {
    const names = [given.space, ...(given.olderSpaces ?? []), ...others];
    const found = yield* this.#source.spaces(names);
    // The same order on every database: spaces of equal passages are told in it.
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
    // The passages that hold most of the question, by what its terms are worth.
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

  /** The part of the index that an agent's question needs. */
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

  /** What the person pinned, which a prompt brings, and the rules that the situation falls under. */
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
    const tokens = always.reduce((sum, { text }) => sum + tokensOf(text), 0);
    return [...pinned, ...always, ...rulesFor(others, situation, RULES_TOKENS_MAX - tokens)];
  }

  /** Ids of passages, best first; none at one of the `places`. */
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

  /** The newest of what the person said in that time. */
  #saidIn(space: Space, span: Span | undefined): Steps<readonly number[]> {
    return span === undefined ? done([]) : this.#source.saidIn(space, span, DATED_MAX);
  }

  /** Records with these digests, and the places of their passages. */
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

/** Terms that the ranking looks for by their letters. */
function lettersOf(asked: Question, given: RecallQuestion): Set<string> {
  const pairs = [...asked.pairs].flatMap((pair) => pair.split(' '));
  const agent = given.agent === undefined ? [] : termsOf(given.humanText);
  const around = given.agent === undefined ? asked.assistant : termsOf(given.assistantText);
  return new Set([...asked.human, ...asked.humanWholes, ...pairs, ...agent, ...around]);
}

/** The assistant's words join only where the person's own say too little. */
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
