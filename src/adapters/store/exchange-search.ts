import { shortReference } from '../../core/memory/reference.ts';
import {
  type Answer,
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
  isCommonBranch,
  type RememberedExchange,
} from '../../core/recall/exchange-ranking.ts';
import type { AgentCandidate, AgentLook } from '../../core/recall/agent-facts.ts';
import { isAnswer, isReplyPrompt, isTelling, ownWordsOf } from '../../core/recall/own-words.ts';
import { speaksOfThePast } from '../../core/recall/past.ts';
import { shareBelow, SIGNALS_MAX, speaks } from '../../core/recall/running-share.ts';
import { partsOf } from '../../core/recall/recall-block.ts';
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
  RecalledSession,
  RecalledProvenance,
  SpeakerRole,
} from '../../ports/memory.ts';
import type { SpacePostings } from './postings.ts';
import type {
  RecallSource,
  Space,
  Session,
  ExchangeParts,
  ExchangePlace,
  SpokenText,
} from './recall-source.ts';
import { type Steps, together } from './steps.ts';
import {
  type EarlierSession,
  likeliestSessions,
  SESSIONS_MAX,
  type SessionTitles,
  shareTitles,
  titlesOf,
} from '../../core/recall/session-brief.ts';
import { namesOf } from '../../core/recall/session-names.ts';
import { filesFrom } from './provenance.ts';

/**
 * Recalls for an agent. For a prompt the answer has lines of the best exchanges, if the prompt has more in common with
 * the memory than most earlier prompts or mentions an earlier session. At the start of a session the answer also has
 * the earlier sessions that most likely matter. For a second look the answer has lines about the action.
 */

/** Bound on the terms of the prompt (its first ones), and on those of the assistant's last text (its last ones). */
const TERMS_MAX = 48;
/** Bounds on the exchanges that are read and ranked, and on the passages of each space by which they are found. */
const EXCHANGES_MAX = 40;
const PASSAGES_MAX = 64;
/** Bound on the passages of each space that are found by the terms that only the assistant's last text has. */
const SESSION_PASSAGES_MAX = 24;
/** Bound on the exchanges of a second look. Twelve of 10 kB each, among 10,000 memories, take 6 ms of CPU time. */
const LOOKED_EXCHANGES_MAX = 12;
/** Bound on the terms by which a second look searches. */
const LOOKED_TERMS_MAX = 64;
/** Bound on the prompt's rarest words, by which sessions are found. */
const RAREST_MAX = 20;
/**
 * Bounds on the tokens that are quoted of each exchange, best exchange first; further exchanges are not quoted. If the
 * best exchange has the needed fact, a quote of 60 tokens contains the fact in 44 % of the cases, one of 100 in 56 %.
 */
const QUOTE_TOKENS = [80, 45, 45, 30];
/**
 * Exchanges are searched in groups, best first, for lines to quote. No further group is searched once this many answers
 * were searched; each takes 0.3 ms. In 787 prompts svc quoted no answer after the twelfth.
 */
const TRIED_MAX = 12;
/** Weight of a word of the assistant's last text in the score of a line, relative to one of the prompt. */
const LINE_AROUND_WEIGHT = 0.35;

interface AgentQuestion extends RecallQuestion {
  readonly agent: AgentFacts;
}

/** The part of the index that a question needs. */
export interface Looked {
  readonly spaces: readonly Space[];
  readonly postings: readonly SpacePostings[];
  /**
   * Returns ids of passages with at least one of these terms, at most `most` of each space, without passages of
   * `excluded` records. Of each space, the passages whose terms have the highest total value come first.
   */
  passagesWith(terms: readonly ExchangeTerm[], most: number): Steps<readonly number[]>;
  /** Ids of the records that the request already contains, and of those that must never be recalled (RecallMarks). */
  readonly excluded: ReadonlySet<number>;
}

/** Stores the signals of the last prompts of each space: how much each prompt had in common with the memory. */
export interface SharedSignals {
  /** Returns the signals of a space, oldest first. */
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
        gate: isHeard ? 'open' : isReplyPrompt(own) ? 'reply' : 'weak',
        candidates: yield* this.#candidates(ranked, isHeard, verdicts),
      });
    }
    const sessions =
      // A prompt that only answers a question names no subject by which sessions could be chosen.
      question.agent.briefTokensMax === 0 || isAnswer(own)
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

  /**
   * Returns lines about the files, names and errors of an action; only about its errors if the prompt is a mere reply.
   * Returns none if no stored text names one of these.
   */
  *look(
    question: AgentQuestion,
    action: Action,
    looked: Looked,
  ): Steps<Required<Pick<RecallAnswer, 'exchanges'>>> {
    const { spaces, postings, excluded } = looked;
    const isReply = isReplyPrompt(ownWordsOf(question.humanText));
    const cues = cuesOf(action, question.humanText).filter(
      ({ kind }) => kind === 'error' || !isReply,
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
    if (signal === 0 || isReplyPrompt(own)) return false;
    const earlier = asked.earlier.slice(-SIGNALS_MAX);
    // A project without memories has no signals, but it can get global memories.
    if (home !== undefined) this.#signals.add(home.id, question.humanText, signal);
    // A prompt that mentions an earlier session is answered however weak its signal is, unless the signal is 0. Test
    // this last, because V8 needs 10 ms to compile the pattern at its first use.
    return speaks(signal, earlier, question.agent.quietShare) || speaksOfThePast(own);
  }

  /**
   * Quotes lines of the best exchanges. Each line must add something new. An exchange comes last if only its
   * request could be quoted, and the request says little without its answer.
   */
  *#quote(
    ranked: readonly RankedExchange<Exchange>[],
    terms: readonly ExchangeTerm[],
    said: SaidLines,
  ): Steps<{ readonly quoted: LocatedExchange[]; readonly verdicts: Verdicts }> {
    const verdicts = new Map<string, AgentCandidate['verdict']>();
    const values = lineValues(terms);
    const own = new Set(terms.flatMap(({ term, isOwn }) => (isOwn ? term : [])));
    const places = QUOTE_TOKENS.length;
    const quote = (texts: ExchangeTexts, place: number): Quoted => {
      const tokensMax = QUOTE_TOKENS[place] ?? 0;
      return { texts, quotes: quoteExchange(texts, values, { tokensMax, own, said }) };
    };
    let kept: Quoted[] = [];
    let tried = 0;
    const unanswered: ExchangeTexts[] = [];
    for (let at = 0; at < ranked.length && kept.length < places; at += places) {
      if (tried >= TRIED_MAX) break;
      const some = ranked.slice(at, at + places).map(({ exchange }) => exchange);
      const read = (yield* this.#reader.texts(some)).flatMap((texts) => texts ?? []);
      // Drop an exchange if a newer one is about all its files, and at least one of these has changed in between.
      const all = [...kept.map(({ texts }) => texts), ...read];
      const current = new Set(withoutSuperseded(all, (texts) => texts));
      kept = kept.filter(({ texts }) => current.has(texts));
      for (const texts of read) {
        if (!current.has(texts)) verdicts.set(texts.ref, 'outgrown');
        if (!current.has(texts) || kept.length === places) continue;
        if (texts.answered !== '') tried += 1;
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
      return [{ ref, at, score, text, verdict }];
    });
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

/** Returns the spaces of a project that are stored: first the project's own, then its `olderSpaces`. */
function spacesOfProject(
  { space, olderSpaces = [] }: AgentQuestion,
  spaces: readonly Space[],
): Space[] {
  return [space, ...olderSpaces].flatMap((one) => spaces.find(({ name }) => name === one) ?? []);
}

/** Removes copies. If a project changes its space during a conversation, both spaces may have the same exchange. */
function withoutCopies(exchanges: readonly Exchange[]): Exchange[] {
  const seen = new Set<string>();
  return exchanges.filter(({ words }) => {
    if (seen.has(words)) return false;
    seen.add(words);
    return true;
  });
}

/** Returns the rarest terms of the prompt, which distinguish sessions best. Each costs a look-up in the index. */
function rarest(terms: readonly ExchangeTerm[]): string[] {
  return terms
    .filter(({ isOwn }) => isOwn)
    .toSorted((a, b) => b.value - a.value)
    .slice(0, RAREST_MAX)
    .map(({ term }) => term);
}

/** Returns how much each term adds to the score of a line. */
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

/**
 * Returns the mean sizes of exchanges, estimated from the candidates, because the index has sizes of passages only.
 * `exchanges` is the number of passages, because the index does not count exchanges.
 */
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

/**
 * Fewest words of a file name that is searched for. Names of one word, such as index.ts, are too common to show what a
 * session is about.
 */
const NAME_WORDS_MIN = 2;

function wordsOfName(file: string): readonly (readonly string[])[] {
  const { words } = readTerms(file.replace(/\.\w+$/, ''));
  return words.length < NAME_WORDS_MIN ? [] : [words];
}

function mean(sizes: readonly number[]): number {
  return sizes.reduce((sum, size) => sum + size, 0) / Math.max(1, sizes.length);
}

/** Bound on the newest records of a project, from which sessions are listed: some 100 sessions. */
const RECORDS_MAX = 1200;
const SESSIONS_READ_MAX = 128;
/**
 * Bounds on the exchanges that are read from a session's beginning and end. Usually one of the first two says what the
 * session was about (the very first may be "hi"), and the last answers say how it ended.
 */
const OPENING_MAX = 2;
const CLOSING_MAX = 3;
/** Bound on the passages, from either end of a session, in which its first or its last exchanges are searched. */
const END_PASSAGES = 16;
/** Bound on the exchanges of a session that are read because they rank highest for the prompt. */
const LIKE_MAX = 2;
/**
 * Bounds on the passages that are read for each word of the prompt, newest first: their number, and the number of the
 * project's newest passages in which they are searched (about those of RECORDS_MAX records). Without the second bound a
 * recall from 100,000 memories took 20 ms longer, for sessions that are too old to be listed.
 */
const HOLDERS_MAX = 200;
const HOLDERS_AMONG = 4096;

const DAY_MS = 86_400_000;

interface Found extends EarlierSession {
  /**
   * The only branch of the session apart from common ones such as main. '' if there is none, if there are several, or
   * if the asking session is on that branch too.
   */
  readonly branch: string;
  readonly conversation: number;
}

interface SessionQuestion {
  /** The spaces of one project, its own first. */
  readonly spaces: readonly Space[];
  readonly agent: AgentFacts;
  readonly now: number;
  readonly terms: readonly string[];
  /** The exchanges that were found for the prompt, best first. */
  readonly ranked: readonly RankedExchange<Exchange>[];
  /** Ids of records that must not be quoted. */
  readonly excluded: ReadonlySet<number>;
  readonly prompt: string;
}

/** Finds the earlier sessions of a project that the brief at the start of a new session lists. */
class SessionSearch {
  readonly #source: RecallSource;
  readonly #reader: ExchangeReader;

  constructor(source: RecallSource, reader: ExchangeReader) {
    this.#source = source;
    this.#reader = reader;
  }

  /** Returns at most SESSIONS_MAX sessions, the likeliest first. A session without a title of its own is left out. */
  *recall(question: SessionQuestion): Steps<RecalledSession[]> {
    const { agent, now, spaces } = question;
    const [newest, holders] = yield* together([
      this.#newest(spaces),
      this.#holders(spaces, question.terms),
    ]);
    const rows = newest.filter(({ key }) => key !== agent.conversation);
    const values = new Map(
      [...holders].map(([term, found]) => [term, valueIn(rows.length, found.size)]),
    );
    const fits = fitsOf(question.ranked);
    const sessions = rows.map(({ conversation, at, branches }): Found => {
      let sharedWords = 0;
      for (const [term, found] of holders) {
        if (found.has(conversation)) sharedWords += values.get(term) ?? 0;
      }
      const own = branches.split(',').filter((one) => !isCommonBranch(one));
      const isSameBranch = own.includes(agent.branch);
      const [branch = ''] = own;
      return {
        conversation,
        at,
        branch: own.length === 1 && !isSameBranch ? branch : '',
        isSameBranch,
        sharedWords,
        fit: fits.get(conversation) ?? 0,
      };
    });
    const likeliest = likeliestSessions(sessions, now);
    const said = new SaidLines(question.prompt);
    const found: { at: number; branch: string; titles: SessionTitles<ExchangeTexts> }[] = [];
    for (let at = 0; at < likeliest.length && found.length < SESSIONS_MAX; at += SESSIONS_MAX) {
      const some = likeliest.slice(at, at + SESSIONS_MAX);
      const read = yield* together(some.map((one) => this.#textsOf(one.conversation, question)));
      const names = namesOf(read, values);
      for (const [place, texts] of read.entries()) {
        if (found.length === SESSIONS_MAX) break;
        const titles = titlesOf(texts, values, names[place]);
        const title = titles.said(said) ?? titles.about(said);
        if (title === undefined) continue;
        said.add(partsOf(title.title).join('\n'));
        found.push({ at: some[place]?.at ?? 0, branch: some[place]?.branch ?? '', titles });
      }
    }
    const others = new SaidLines(question.prompt);
    const days = new Set(found.map(({ at }) => Math.floor(at / DAY_MS))).size;
    const { briefTokensMax } = agent;
    const titles = shareTitles(
      found.map(({ branch, titles: { said: whole, about } }) => ({
        branch,
        titleWithin: (tokensMax: number) => whole(others, tokensMax),
        namesWithin: (tokensMax: number) => about(others, tokensMax),
      })),
      { briefTokensMax, days },
    );
    return found.flatMap(({ at }, place) => {
      const one = titles[place];
      if (one === undefined || partsOf(one.title).every((part) => others.has(part))) return [];
      others.add(partsOf(one.title).join('\n'));
      const { exchanges, title } = one;
      const records = [...new Set(exchanges.flatMap((exchange) => exchange.records))];
      return [{ at, title, space: exchanges[0]?.space ?? '', records }];
    });
  }

  /** Returns the newest sessions. If a project changed its space during a session, only the newer part counts. */
  *#newest(spaces: readonly Space[]): Steps<Session[]> {
    const most = Math.ceil(RECORDS_MAX / Math.max(1, spaces.length));
    const found = yield* together(
      spaces.map((space) => this.#source.sessions(space, most, SESSIONS_READ_MAX)),
    );
    const keys = new Set<string>();
    return found
      .flat()
      .toSorted((a, b) => b.at - a.at)
      .filter(({ key }) => {
        if (keys.has(key)) return false;
        keys.add(key);
        return true;
      })
      .slice(0, SESSIONS_READ_MAX);
  }

  /** Returns for each term the conversations of the newest passages that have the term; see RecallSource.holders. */
  *#holders(spaces: readonly Space[], terms: readonly string[]): Steps<Map<string, Set<number>>> {
    const count = Math.max(1, spaces.length);
    const limits = {
      most: Math.ceil(HOLDERS_MAX / count),
      among: Math.ceil(HOLDERS_AMONG / count),
    };
    const holders = new Map(terms.map((term) => [term, new Set<number>()]));
    const all = yield* together(spaces.map((space) => this.#source.holders(space, terms, limits)));
    for (const held of all) {
      for (const [key, conversations] of held.entries()) {
        const found = holders.get(terms[key] ?? '');
        for (const conversation of conversations) found?.add(conversation);
      }
    }
    return holders;
  }

  /**
   * Returns the texts of a session's exchanges that rank highest for the prompt, and then of its last and first
   * exchanges, without exchanges of which a record is excluded.
   */
  *#textsOf(
    conversation: number,
    { ranked, excluded }: Pick<SessionQuestion, 'ranked' | 'excluded'>,
  ): Steps<ExchangeTexts[]> {
    const [first, last] = yield* together([
      this.#source.opening(conversation, END_PASSAGES),
      this.#source.closing(conversation, END_PASSAGES),
    ]);
    const [begin, end] = yield* together([
      this.#reader.ofPassages(first, OPENING_MAX),
      this.#reader.ofPassages(last, CLOSING_MAX),
    ]);
    const numbers = new Set(end.map(({ number }) => number));
    const ends = [...end, ...begin.filter(({ number }) => !numbers.has(number))].filter(
      ({ records }) => !records.some((one) => excluded.has(one)),
    );
    const like = ranked
      .map(({ exchange }) => exchange)
      .filter((one) => one.conversation === conversation)
      .slice(0, LIKE_MAX);
    const read = yield* this.#reader.texts([...like, ...ends]);
    const texts = read.flatMap((one) => one ?? []);
    // A title is a request of the user, so a text that may not be the user's gives none.
    return texts.map((one) => (one.isUnverified ? { ...one, asked: '' } : one));
  }
}

/**
 * Returns for each conversation with a ranked exchange the score of its best one, as a share from 0 to 1 of the highest
 * score of all. Empty if no score is above 0.
 */
function fitsOf(ranked: readonly RankedExchange<Exchange>[]): ReadonlyMap<number, number> {
  const most = ranked[0]?.score ?? 0;
  const fits = new Map<number, number>();
  for (const { exchange, score } of most > 0 ? ranked : []) {
    const { conversation } = exchange;
    if (!fits.has(conversation)) fits.set(conversation, Math.max(0, score / most));
  }
  return fits;
}

/** Returns the weight of a word. It is higher if fewer sessions have the word. */
function valueIn(sessions: number, holders: number): number {
  return Math.log(1 + (sessions + 0.5) / (holders + 0.5));
}

interface Exchange extends RememberedExchange {
  /** The id of the conversation. `number` counts the exchanges in it. */
  readonly conversation: number;
  readonly number: number;
  readonly records: readonly number[];
  /** The records whose texts may be quoted; see quotableOf. */
  readonly quotable: readonly number[];
  /** A hash that is the same for exchanges with the same words in the same order. */
  readonly words: string;
}

interface ExchangeTexts extends Answer {
  readonly asked: string;
  /** True if svc cannot be certain that the user wrote `asked`. */
  readonly isUnverified: boolean;
  /** The reference of the answer, or of the request if there is no answer. */
  readonly ref: string;
  /** The references of the records that were read. */
  readonly records: readonly string[];
  readonly space: string;
  readonly client: string;
  readonly at: number;
  readonly provenance: RecalledProvenance | undefined;
}

/** Bound on cached exchanges, some 4 kB each. The prompts of a project find the same exchanges again. */
const REMEMBERED_MAX = 512;

/** Reads exchanges: their terms for ranking, their texts for quoting; each up to a bound. */
class ExchangeReader {
  readonly #source: RecallSource;
  #generation: string | undefined;
  /**
   * Exchanges that have both a request and an answer, by `keyOf`. If a record that was found is not in the cached
   * exchange, the exchange is read again, because each repetition of a prompt adds records to its exchange.
   */
  readonly #known = new Map<string, Omit<Exchange, 'at'>>();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /** Returns the exchanges of these passages, at most `most`, in the passages' order. */
  *ofPassages(ids: readonly number[], most: number): Steps<Exchange[]> {
    this.#dropStale();
    const places = yield* this.#source.exchangesOf(ids, most);
    const unknown = places.filter(
      (place) => this.#known.get(keyOf(place))?.records.includes(place.record) !== true,
    );
    const read = new Map<string, Omit<Exchange, 'at'>>();
    if (unknown.length > 0) {
      for (const row of yield* this.#source.readExchanges(unknown)) {
        const one = exchangeOf(row);
        read.set(keyOf(row), one);
        if (isWhole(row)) this.#known.set(keyOf(row), one);
      }
    }
    return places.flatMap(({ at, ...place }) => {
      const one = read.get(keyOf(place)) ?? this.#known.get(keyOf(place));
      return one === undefined ? [] : { ...one, at };
    });
  }

  /** Empties the cache if a cached text may have been deleted, or if the cache is full. */
  #dropStale(): void {
    const generation = this.#source.generation();
    const isFull = this.#known.size > REMEMBERED_MAX;
    if (generation !== undefined && generation === this.#generation && !isFull) return;
    this.#generation = generation;
    this.#known.clear();
  }

  /** Returns the texts of each exchange, in order; undefined if its records were deleted. */
  *texts(exchanges: readonly Pick<Exchange, 'quotable'>[]): Steps<(ExchangeTexts | undefined)[]> {
    const ids = exchanges.flatMap(({ quotable }) => quotable);
    const rows = yield* this.#source.readRecords(ids);
    const byId = new Map(rows.map((row) => [row.id, row]));
    return exchanges.map(({ quotable }) => textsOf(quotable.flatMap((id) => byId.get(id) ?? [])));
  }
}

function keyOf({
  conversation,
  exchange,
}: Pick<ExchangePlace, 'conversation' | 'exchange'>): string {
  return `${conversation} ${exchange}`;
}

/** Says whether the store has both the request and the answer of an exchange. */
function isWhole({ parts }: ExchangeParts): boolean {
  const answers = parts.filter(({ speaker }) => speaker === 'answer').length;
  return answers > 0 && answers < parts.length;
}

function exchangeOf({
  conversation,
  exchange,
  branch,
  parts,
}: ExchangeParts): Omit<Exchange, 'at'> {
  const asked: number[] = [];
  const answered: number[] = [];
  const records = new Set<number>();
  let answerChars = 0;
  // For each passage of the answer, the index of its first word and its number of characters.
  const passages: { readonly from: number; readonly chars: number }[] = [];
  for (const { speaker, record, chars, words } of parts) {
    records.add(record);
    if (speaker === 'answer') {
      answerChars += chars;
      passages.push({ from: answered.length, chars });
    }
    // The words of an unverified request count like words of the answer, and come before it. So they are part of the
    // conclusion only if the answer is shorter than CONCLUSION_CHARS.
    const list = speaker === 'person' ? asked : answered;
    for (const word of words) list.push(word);
  }
  return {
    conversation,
    number: exchange,
    branch: branch ?? '',
    asked: Int32Array.from(asked),
    answered: Int32Array.from(answered),
    answerChars,
    isUnverified: parts.some(({ speaker }) => speaker === 'unverified'),
    concludedFrom: conclusionIn(passages),
    records: [...records],
    quotable: quotableOf([...records], parts),
    words: [asked.length, hashOf(asked), answered.length, hashOf(answered)].join(' '),
  };
}

/**
 * Bound on the requests of an exchange that are read as texts, and on its answers. A prompt that is sent again adds one
 * of each, and the search for a sentence in 64 of them takes 4 ms.
 */
const TEXTS_MAX = 8;

/** Returns the newest TEXTS_MAX prompts and the newest TEXTS_MAX answers among the records, in the given order. */
function quotableOf(records: readonly number[], parts: ExchangeParts['parts']): readonly number[] {
  if (records.length <= TEXTS_MAX) return records;
  const answers = new Set(
    parts.flatMap(({ speaker, record }) => (speaker === 'answer' ? record : [])),
  );
  const newest = records.toSorted((a, b) => b - a);
  const read = new Set([
    ...newest.filter((record) => answers.has(record)).slice(0, TEXTS_MAX),
    ...newest.filter((record) => !answers.has(record)).slice(0, TEXTS_MAX),
  ]);
  return records.filter((record) => read.has(record));
}

/** Characters from which an answer's last passages are long enough to count as its conclusion. */
const CONCLUSION_CHARS = 1000;

/** Returns the index of the conclusion's first word in the answer; 0 if the answer is shorter than CONCLUSION_CHARS. */
function conclusionIn(
  passages: readonly { readonly from: number; readonly chars: number }[],
): number {
  let chars = 0;
  for (const passage of passages.toReversed()) {
    chars += passage.chars;
    if (chars >= CONCLUSION_CHARS) return passage.from;
  }
  return 0;
}

/** Hashes numbers by FNV-1a. */
function hashOf(numbers: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const number of numbers) hash = Math.imul(hash ^ number, 0x01000193);
  return hash >>> 0;
}

function textsOf(rows: readonly SpokenText[]): ExchangeTexts | undefined {
  const request = rows.find(({ role }) => role === 'user');
  const answers = rows.filter(({ role }) => role === 'assistant');
  const [answer] = answers;
  const main = answer ?? request;
  if (main === undefined) return undefined;
  const { ref, space, client, at } = main;
  return {
    asked: saidBy('user', rows),
    answered: saidBy('assistant', rows),
    // An exchange has several answers if the prompt was sent again. Then no index fits their joined texts.
    lastFrom: answers.length === 1 ? (answer?.lastFrom ?? undefined) : undefined,
    isUnverified: rows.some(({ source }) => source === 'unverified'),
    ref,
    records: rows.map((row) => row.ref),
    space,
    client,
    at,
    provenance: provenanceOf(rows),
  };
}

function provenanceOf(rows: readonly SpokenText[]): RecalledProvenance | undefined {
  for (const { root, files } of rows) {
    if (root !== null && files !== null) return { root, files: filesFrom(files) };
  }
  return undefined;
}

/** Joins an exchange's texts of one role. There may be several if the prompt was sent again, or after an import. */
function saidBy(role: SpeakerRole, rows: readonly SpokenText[]): string {
  return rows
    .filter((row) => row.role === role)
    .map(({ text }) => text)
    .join('\n\n');
}
