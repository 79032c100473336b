import { shortReference } from '../../core/memory/reference.ts';
import {
  isUnanswered,
  type Quote,
  quoteExchange,
  type TermValues,
} from '../../core/recall/conclusions.ts';
import { cuesOf, frequencyOf, tellAbout } from '../../core/recall/cues.ts';
import {
  type ExchangeTerm,
  type RankedExchange,
  rankExchanges,
} from '../../core/recall/exchange-ranking.ts';
import type { AgentCandidate, AgentLook } from '../../core/recall/agent-facts.ts';
import { isReply, isTelling, ownWordsOf } from '../../core/recall/own-words.ts';
import { speaksOfThePast } from '../../core/recall/past.ts';
import { shareBelow, SIGNALS_MAX, speaks } from '../../core/recall/running-share.ts';
import { SaidLines } from '../../core/recall/said-lines.ts';
import { inverseFrequency } from '../../core/recall/term-value.ts';
import type { Action } from '../../core/recall/second-look.ts';
import { withoutSuperseded } from '../../core/recall/superseded.ts';
import { readTerms, termsOf } from '../../core/recall/terms.ts';
import type {
  AgentFacts,
  RecallAnswer,
  LocatedExchange,
  RecallQuestion,
} from '../../ports/memory.ts';
import { type Exchange, ExchangeReader, type ExchangeTexts } from './exchanges.ts';
import type { SpacePostings } from './postings.ts';
import type { RecallSource, Space } from './recall-source.ts';
import { SessionSearch } from './session-search.ts';
import { type Steps, together } from './steps.ts';

/** Recall for an agent: lines of whole exchanges, now and then, and a brief at a session's start. */

/** Terms of the prompt; the text around it gives as many. */
const TERMS_MAX = 48;
/** Exchanges that are read whole and ranked; the index finds them by their passages. */
const EXCHANGES_MAX = 40;
const PASSAGES_MAX = 64;
/** Passages that share words with the session so far, whatever the prompt says. */
const SESSION_PASSAGES_MAX = 24;
/** A second look reads all their texts, 10 kB each: 6 ms of a processor in 10,000 memories. */
const LOOKED_EXCHANGES_MAX = 12;
const LOOKED_TERMS_MAX = 64;
/** Words of the prompt that distinguish sessions. */
const RAREST_MAX = 20;
/** Tokens for the best exchange and for those after it: half of the time the best one is it, and 60 tokens hold
 * its fact in 44 % of the cases, 100 in 56 %. */
const QUOTE_TOKENS = [80, 45, 45, 30];
const LINE_AROUND_WEIGHT = 0.35;

export interface AgentQuestion extends RecallQuestion {
  readonly agent: AgentFacts;
}

/** The index's answer to the question. */
export interface Looked {
  readonly spaces: readonly Space[];
  readonly postings: readonly SpacePostings[];
  /** Ids of the passages that hold most of these terms, best first, without those of the request. */
  passagesWith(terms: readonly ExchangeTerm[], most: number): Steps<readonly number[]>;
  /** Ids of the records that the request holds. */
  readonly excluded: ReadonlySet<number>;
}

/** How much the last prompts of each space shared with the memory, the oldest first. */
export interface SharedSignals {
  of(space: number): Steps<readonly number[]>;
  add(space: number, prompt: string, signal: number): void;
}

export class ExchangeSearch {
  readonly #signals: SharedSignals;
  readonly #reader: ExchangeReader;
  readonly #sessions: SessionSearch;

  constructor(source: RecallSource, signals: SharedSignals) {
    this.#signals = signals;
    this.#reader = new ExchangeReader(source);
    this.#sessions = new SessionSearch(source, this.#reader);
  }

  *recall(
    question: AgentQuestion,
    looked: Looked,
    explain?: (look: AgentLook) => void,
  ): Steps<Required<Pick<RecallAnswer, 'exchanges' | 'sessions'>>> {
    const { spaces, excluded } = looked;
    const own = ownWordsOf(question.humanText);
    const terms = yield* weigh({ own, around: question.assistantText }, looked);
    const [byPrompt, bySession] = yield* together([
      looked.passagesWith(terms, PASSAGES_MAX),
      looked.passagesWith(
        terms.filter(({ isOwn }) => !isOwn),
        SESSION_PASSAGES_MAX,
      ),
    ]);
    const ids = [...new Set([...byPrompt, ...bySession])];
    const project = spacesOfProject(question, spaces);
    const [read, earlier] = yield* together([
      this.#reader.ofPassages(ids, EXCHANGES_MAX),
      together(project.toReversed().map(({ id }) => this.#signals.of(id))),
    ]);
    const candidates = withoutCopies(
      read.filter(({ records }) => !records.some((record) => excluded.has(record))),
    );
    const sizes = sizesOf(spaces, candidates);
    const { branch, files = [] } = question.agent;
    const { ranked, signal } = rankExchanges(
      {
        terms,
        words: readTerms(own).words,
        files: files.flatMap(wordsOfName),
        branch,
        now: question.now,
        ...sizes,
      },
      candidates,
      this.#reader.vocabulary,
    );
    const heard = { question, own, signal, earlier: earlier.flat(), home: project[0] };
    const isHeard = this.#isHeard(heard);
    const said = new SaidLines(question.humanText);
    const { quoted, verdicts } = isHeard
      ? yield* this.#quote(ranked, terms, said)
      : { quoted: [], verdicts: NO_VERDICTS };
    if (explain !== undefined) {
      const signals = heard.earlier.slice(-SIGNALS_MAX);
      explain({
        signal,
        shareBelow: shareBelow(signal, signals),
        prompts: signals.length,
        gate: isHeard ? 'open' : isReply(own) ? 'reply' : 'weak',
        candidates: yield* this.#candidates(ranked, isHeard, verdicts),
      });
    }
    const sessions =
      question.agent.briefTokensMax === 0
        ? []
        : yield* this.#sessions.recall({
            spaces: project,
            agent: question.agent,
            now: question.now,
            terms: rarest(terms),
            ranked,
            excluded,
            prompt: question.humanText,
          });
    return { exchanges: quoted, sessions };
  }

  /** What was said about the files, names and errors of an action; nothing unless it is surely about them. */
  *look(
    question: AgentQuestion,
    action: Action,
    looked: Looked,
  ): Steps<Required<Pick<RecallAnswer, 'exchanges'>>> {
    const { spaces, postings, excluded } = looked;
    const isAnswer = isReply(ownWordsOf(question.humanText));
    const cues = cuesOf(action, question.humanText).filter(
      ({ kind }) => kind === 'error' || !isAnswer,
    );
    const all = [...new Set(cues.flatMap(({ terms, wholes }) => [...wholes, ...terms]))];
    yield* together(postings.map((space) => space.count(all)));
    const passages = spaces.reduce((sum, space) => sum + space.passages, 0);
    const frequency = (term: string): number =>
      postings.reduce((sum, space) => sum + space.frequency(term), 0);
    const valued = cues.flatMap((cue) => {
      const found = frequencyOf(cue, frequency);
      return found === 0 ? [] : [{ ...cue, value: inverseFrequency(found, passages) }];
    });
    if (valued.length === 0) return { exchanges: [] };
    const terms = [...new Set(valued.flatMap((cue) => [...cue.wholes, ...cue.terms]))]
      .slice(0, LOOKED_TERMS_MAX)
      .map((term) => ({ term, value: inverseFrequency(frequency(term), passages), isOwn: true }));
    const ids = yield* looked.passagesWith(terms, PASSAGES_MAX);
    const read = yield* this.#reader.ofPassages(ids, LOOKED_EXCHANGES_MAX);
    const candidates = withoutCopies(
      read.filter(({ records }) => !records.some((record) => excluded.has(record))),
    );
    const texts = (yield* this.#reader.texts(candidates)).flatMap((one) => one ?? []);
    const around = yield* weigh(
      { own: question.humanText, around: question.assistantText },
      looked,
    );
    const context = lineValues(around.filter(({ term }) => isTelling(term)));
    return { exchanges: tellAbout(texts, valued, context).map(located) };
  }

  #isHeard(asked: {
    readonly question: AgentQuestion;
    readonly own: string;
    readonly signal: number;
    readonly earlier: readonly number[];
    readonly home: Space | undefined;
  }): boolean {
    const { question, own, signal, home } = asked;
    if (signal === 0 || isReply(own)) return false;
    const earlier = asked.earlier.slice(-SIGNALS_MAX);
    // A project that nothing was stored of yet may still hear of what all projects share.
    if (home !== undefined) this.#signals.add(home.id, question.humanText, signal);
    // A prompt that mentions an earlier session always searches the memory, however quiet recall is
    // otherwise.
    return speaks(signal, earlier, speaksOfThePast(own) ? 0 : question.agent.quietShare);
  }

  /** Best first. Each place is for an exchange that says something new; a request without an answer comes last. */
  *#quote(
    ranked: readonly RankedExchange<Exchange>[],
    terms: readonly ExchangeTerm[],
    said: SaidLines,
  ): Steps<{ readonly quoted: LocatedExchange[]; readonly verdicts: Verdicts }> {
    const verdicts = new Map<string, AgentCandidate['verdict']>();
    const values = lineValues(terms);
    const places = QUOTE_TOKENS.length;
    const quote = (texts: ExchangeTexts, place: number): Quoted => {
      const tokensMax = QUOTE_TOKENS[place] ?? 0;
      return { texts, quotes: quoteExchange(texts, values, { tokensMax, said }) };
    };
    let kept: Quoted[] = [];
    const unanswered: ExchangeTexts[] = [];
    for (let at = 0; at < ranked.length && kept.length < places; at += places) {
      const read = yield* this.#read(ranked.slice(at, at + places));
      // The newer of two statements on one file wins.
      const all = [...kept.map(({ texts }) => texts), ...read];
      const current = new Set(withoutSuperseded(all, (texts) => texts));
      kept = kept.filter(({ texts }) => current.has(texts));
      for (const texts of read) {
        if (!current.has(texts)) verdicts.set(texts.ref, 'outgrown');
        if (!current.has(texts) || kept.length === places) continue;
        const one = quote(texts, kept.length);
        if (isUnanswered(one.quotes)) {
          unanswered.push(texts);
          verdicts.set(texts.ref, 'not_whole');
          continue;
        }
        kept.push(one);
        for (const { text } of one.quotes) said.add(text);
      }
    }
    for (const texts of unanswered) {
      if (kept.length === places) break;
      const one = quote(texts, kept.length);
      if (one.quotes.length === 0) continue;
      kept.push(one);
      for (const { text } of one.quotes) said.add(text);
    }
    for (const { texts } of kept) verdicts.set(texts.ref, 'told');
    return { quoted: kept.map(located), verdicts };
  }

  *#candidates(
    ranked: readonly RankedExchange<Exchange>[],
    isHeard: boolean,
    verdicts: Verdicts,
  ): Steps<AgentCandidate[]> {
    const first = ranked.slice(0, EXPLAINED_MAX);
    const read = yield* this.#reader.texts(first.map(({ exchange }) => exchange));
    return first.flatMap(({ score }, place) => {
      const texts = read[place];
      if (texts === undefined) return [];
      const { ref, at, asked, answered } = texts;
      const verdict = isHeard ? (verdicts.get(ref) ?? 'behind') : 'gate';
      const text = (asked === '' ? answered : asked).slice(0, EXPLAINED_CHARS);
      return [{ ref: shortReference(ref), at, score, text, verdict }];
    });
  }

  *#read(ranked: readonly RankedExchange<Exchange>[]): Steps<ExchangeTexts[]> {
    const read = yield* this.#reader.texts(ranked.map(({ exchange }) => exchange));
    return read.flatMap((texts) => texts ?? []);
  }
}

type Verdicts = ReadonlyMap<string, AgentCandidate['verdict']>;

const NO_VERDICTS: Verdicts = new Map();
const EXPLAINED_MAX = 12;
const EXPLAINED_CHARS = 200;

interface Quoted {
  readonly texts: ExchangeTexts;
  readonly quotes: readonly Quote[];
}

function located({ texts, quotes: plain }: Quoted): LocatedExchange {
  const { ref, records, space, client, at, isUnverified, provenance } = texts;
  const quotes = plain.map((quote) =>
    isUnverified && quote.role === 'user' ? { ...quote, source: 'unverified' as const } : quote,
  );
  const found = { ref: shortReference(ref), records, space, client, at, quotes };
  return { ...found, ...(provenance && { provenance }) };
}

/** Its own space, then those that it had before; some may hold nothing yet. */
function spacesOfProject(
  { space, olderSpaces = [] }: AgentQuestion,
  spaces: readonly Space[],
): Space[] {
  return [space, ...olderSpaces].flatMap((one) => spaces.find(({ name }) => name === one) ?? []);
}

/** A conversation that continues while its project gets another space is kept in both. */
function withoutCopies(exchanges: readonly Exchange[]): Exchange[] {
  const seen = new Set<string>();
  return exchanges.filter(({ words }) => {
    if (seen.has(words)) return false;
    seen.add(words);
    return true;
  });
}

/** Each term costs a look-up in the index; the rare ones distinguish sessions. */
function rarest(terms: readonly ExchangeTerm[]): string[] {
  return terms
    .filter(({ isOwn }) => isOwn)
    .toSorted((a, b) => b.value - a.value)
    .slice(0, RAREST_MAX)
    .map(({ term }) => term);
}

/** The gain of a line by each word. Words around the prompt say which of several lines is meant. */
function lineValues(terms: readonly ExchangeTerm[]): TermValues {
  return new Map(
    terms.map(({ term, value, isOwn }) => [term, isOwn ? value : LINE_AROUND_WEIGHT * value]),
  );
}

function* weigh(
  { own, around }: { readonly own: string; readonly around: string },
  { spaces, postings }: Looked,
): Steps<ExchangeTerm[]> {
  const said = [...new Set(termsOf(own))].slice(0, TERMS_MAX);
  const known = new Set(said);
  const beside = [...new Set(termsOf(around))].filter((term) => !known.has(term));
  const terms = [...said, ...beside.slice(-TERMS_MAX)];
  const passages = spaces.reduce((sum, space) => sum + space.passages, 0);
  yield* together(postings.map((space) => space.count(terms)));
  return terms.map((term, place) => {
    const frequency = postings.reduce((sum, space) => sum + space.frequency(term), 0);
    return { term, value: inverseFrequency(frequency, passages), isOwn: place < said.length };
  });
}

/** Means are taken from the candidates: the index knows passages, not exchanges. */
function sizesOf(spaces: readonly Space[], candidates: readonly Exchange[]) {
  const passages = spaces.reduce((sum, space) => sum + space.passages, 0);
  return {
    exchanges: passages,
    averageTerms: mean(candidates.map(({ asked, answered }) => 2 * asked.length + answered.length)),
    averageAsked: mean(candidates.map(({ asked }) => asked.length)),
    averageConcluded: mean(
      candidates.map(({ answered, concludedFrom }) => answered.length - concludedFrom),
    ),
  };
}

/** A name of one word, such as index.ts, is said in every project of everything. */
const NAME_WORDS_MIN = 2;

function wordsOfName(file: string): readonly (readonly string[])[] {
  const { words } = readTerms(file.replace(/\.\w+$/, ''));
  return words.length < NAME_WORDS_MIN ? [] : [words];
}

function mean(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0) / Math.max(1, sizes.length);
}
