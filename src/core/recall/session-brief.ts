import { estimateTextTokens } from '../bytes/tokens.ts';
import {
  type Answer,
  concludes,
  firstTold,
  isOneStatement,
  plainLine,
  soleSentences,
  type TermValues,
  withoutPoliteness,
} from './conclusions.ts';
import { isReply, isTelling, ownWordsOf, sentencesAsked } from './own-words.ts';
import { ANSWER_MARK, TITLE_ARROW } from './recall-block.ts';
import type { SaidLines } from './said-lines.ts';
import { aboutNames, hasName, namesOf } from './session-names.ts';
import { isOfMoment, objectPointsBack, requestPointsBack } from './saying.ts';
import { hasValue, isNoRequest, kindOf, SPECIFIC } from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * Writes the list of earlier sessions that svc adds to the first prompt of an agent's session: one line (title) for
 * each of the few that most likely matter. Hardly anything shows which first prompt needs memory, so almost each gets a
 * list.
 */

/** Bound on sessions in the list: its token limit allows no more. */
export const SESSIONS_MAX = 4;
/** Bound on sessions that are considered: if one has nothing new to say, the next takes its place. */
const CANDIDATES_MAX = 12;
/** Tokens of the list for each session in it. With fewer, hardly any line has room for a conclusion. */
const SESSION_TOKENS = 16;
/** Tokens that are kept for each session until it has a title: enough for two of the session's names. */
const NAMES_TOKENS = 11;
/** Most tokens of a title. */
const TITLE_TOKENS_MAX = 36;
/** Tokens of the block's opening and closing line, svc's mark and the line above the titles. */
const FRAME_TOKENS = 40;
/** Tokens of a day in front of a title. */
const DATE_TOKENS = 9;
/** Tokens of the dash and the line end of a title. */
const LINE_TOKENS = 2;

export interface EarlierSession {
  /** When the session was last worked on, in milliseconds since 1970. */
  readonly at: number;
  readonly isSameBranch: boolean;
  /** Sum of the inverse document frequencies of the prompt's words that the session contains. */
  readonly sharedWords: number;
  /** How well its best exchange fits the prompt, relative to the best exchange of all sessions: from 0 to 1. */
  readonly fit: number;
}

const SCORE = { branch: 3, wordsShare: 0.25, wordsMost: 6, newest: 4, fit: 2 };
const DAY_MS = 86_400_000;
/** Least `fit` of a session of another branch. With less, the session is mostly about something else. */
const FIT_ELSEWHERE_MIN = 0.6;

/**
 * Orders the sessions by branch, shared rare words, fit of the best exchange, and age. Leaves out sessions of other
 * branches that fit badly, unless no session fits at all, as after "hello". Returns at most CANDIDATES_MAX sessions.
 */
export function likeliestSessions<Kind extends EarlierSession>(
  sessions: readonly Kind[],
  now: number,
): Kind[] {
  const isFound = sessions.some(({ fit }) => fit > 0);
  return sessions
    .filter(({ fit, isSameBranch }) => !isFound || isSameBranch || fit >= FIT_ELSEWHERE_MIN)
    .map((session) => ({ session, score: scoreOf(session, now) }))
    .toSorted((a, b) => b.score - a.score || b.session.at - a.session.at)
    .slice(0, CANDIDATES_MAX)
    .map(({ session }) => session);
}

function scoreOf({ at, isSameBranch, sharedWords, fit }: EarlierSession, now: number): number {
  const days = Math.max(0, now - at) / DAY_MS;
  const words = Math.min(SCORE.wordsMost, sharedWords * SCORE.wordsShare);
  return (isSameBranch ? SCORE.branch : 0) + words + SCORE.fit * fit + SCORE.newest / (1 + days);
}

export interface TitledExchange extends Answer {
  readonly asked: string;
}

export interface Titled<Kind> {
  readonly title: string;
  /** The exchanges whose words the title may have. */
  readonly exchanges: readonly Kind[];
}

export interface Listed<Kind> {
  /** The one branch that names the session; '' if it had several, a common one, or that of the session that asks. */
  readonly branch: string;
  /** Returns `said` of the session's titles (see SessionTitles) within a token limit. */
  titleWithin(tokensMax: number): Titled<Kind> | undefined;
  /** Returns `about` of the session's titles within a token limit. */
  namesWithin(tokensMax: number): Titled<Kind> | undefined;
}

/**
 * Returns titles for the first sessions, as many as the list's tokens allow; undefined for a session whose title does
 * not fit. A session higher in the list may use all tokens but NAMES_TOKENS for each session below it. A session whose
 * conclusion does not fit is listed by its names, and gets its conclusion if the other titles leave enough tokens. From
 * the tokens that then remain, titles get the name of their branch, each branch once.
 * `days`: on how many days the sessions were.
 */
export function shareTitles<Kind>(
  sessions: readonly Listed<Kind>[],
  { briefTokensMax, days }: { readonly briefTokensMax: number; readonly days: number },
): (Titled<Kind> | undefined)[] {
  let left = briefTokensMax - FRAME_TOKENS - DATE_TOKENS * days;
  const listed = sessions.slice(0, Math.max(1, Math.floor(left / SESSION_TOKENS)));
  const titles: (Titled<Kind> | undefined)[] = [];
  for (const [place, session] of listed.entries()) {
    const later = NAMES_TOKENS * (listed.length - place - 1);
    const share = left - later - LINE_TOKENS;
    const one =
      session.titleWithin(Math.min(TITLE_TOKENS_MAX, share)) ?? session.namesWithin(share);
    titles[place] = one;
    left -= tokensOf(one);
  }
  for (const [place, session] of listed.entries()) {
    const short = titles[place];
    const most = Math.min(TITLE_TOKENS_MAX, left + tokensOf(short) - LINE_TOKENS);
    const longer = session.titleWithin(most) ?? short;
    titles[place] = longer;
    left += tokensOf(short) - tokensOf(longer);
  }
  const named = new Set(['']);
  return titles.map((one, place) => {
    const branch = sessions[place]?.branch ?? '';
    const tokens = estimateTextTokens(` (${branch})`);
    if (one === undefined || named.has(branch) || tokens > left) return one;
    named.add(branch);
    left -= tokens;
    return { ...one, title: `(${branch}) ${one.title}` };
  });
}

function tokensOf(line: Titled<unknown> | undefined): number {
  return line === undefined ? 0 : LINE_TOKENS + estimateTextTokens(line.title);
}

/** Returns a session's title within a token limit, which repeats none of the lines in `said`. */
type TitleWithin<Kind> = (
  said: Pick<SaidLines, 'has'>,
  tokensMax?: number,
) => Titled<Kind> | undefined;

export interface SessionTitles<Kind> {
  /**
   * What an answer concluded. If that names nothing of the session, the session's names precede it, or a request if the
   * session has no names, as far as they fit. Without a conclusion: the request, if it is a single statement.
   */
  readonly said: TitleWithin<Kind>;
  /** The names that the session was about. If none fits: a request that is its subject, or is a single statement. */
  readonly about: TitleWithin<Kind>;
}

/**
 * Reads a session's exchanges once, and returns functions that describe the session in one line (title). `names`: the
 * session's, see namesOf().
 */
export function titlesOf<Kind extends TitledExchange>(
  exchanges: readonly Kind[],
  values: TermValues,
  names: readonly string[] = namesOf([exchanges])[0] ?? [],
): SessionTitles<Kind> {
  const asked = namingIn(exchanges.map((one) => ownWordsOf(one.asked)).join('\n'));
  const read = exchanges.map((exchange) => ({
    exchange,
    lines: linesOf(exchange, { values, asked }),
  }));
  /** Returns the exchanges from which the names in a title come, and `also`. */
  const naming = (title: string, also?: Kind): readonly Kind[] => {
    const shown = names.filter((name) => title.includes(`\`${name}\``));
    return exchanges.filter(
      (one) => one === also || hasName(`${one.asked}\n${one.answered}`, shown),
    );
  };
  const best =
    (from: (lines: ExchangeLines, limits: TitleLimits) => Scored | undefined): TitleWithin<Kind> =>
    (said, tokensMax = TITLE_TOKENS_MAX) => {
      let found: (Titled<Kind> & Scored) | undefined;
      for (const { exchange, lines } of read) {
        const one = from(lines, { said, tokensMax });
        if (one !== undefined && one.score > (found?.score ?? Number.NEGATIVE_INFINITY)) {
          found = {
            exchanges: one.hasNames === true ? naming(one.title, exchange) : [exchange],
            ...one,
          };
        }
      }
      return found && { exchanges: found.exchanges, title: found.title };
    };
  const ofRequest = best(requestFrom);
  return {
    said: best((lines, limits) => lineFrom(lines, names, limits)),
    about: (said, tokensMax = TITLE_TOKENS_MAX) => {
      const title = aboutNames(names, { tokensMax });
      if (title === '') return ofRequest(said, tokensMax);
      return said.has(title) ? undefined : { title, exchanges: naming(title) };
    },
  };
}

/** Summands of a title's score. */
const VALUE = {
  word: 0.3,
  order: 1,
  finding: 1.5,
  change: 1,
  asked: 1,
  // For each sentence before it: an answer begins with what it did, and details follow.
  later: -0.1,
  // For a statement without a conclusion.
  untold: -100,
};
/** Most informative words of a request that count in its score. */
const WORDS_MAX = 8;
/** Most words of an answer's line that count because the user's requests have them too. */
const ABOUT_MAX = 3;
/** If the requests have fewer informative words, such as "ok, go", a title need not share any with them. */
const ASKED_MIN = 5;
/** Fewest informative words that a request shares with its answer if it is the session's subject. */
const TAKEN_MIN = 2;
/** Tokens of ANSWER_MARK and of TITLE_ARROW. */
const MARK_TOKENS = 2;
const ARROW_TOKENS = 4;

interface Scored {
  readonly title: string;
  readonly score: number;
  /** True if the title lists names of the session, which may come from any of its exchanges. */
  readonly hasNames?: true;
}

/** A sentence that can be a part of a title. */
interface Candidate extends Scored {
  /** The sentence as the exchange has it. `title` is the same without Markdown and politeness. */
  readonly sentence: string;
  readonly tokens: number;
}

interface ExchangeLines {
  readonly told: readonly Candidate[];
  readonly requests: readonly Candidate[];
  /** True if the request says all that the user wanted to be remembered. */
  readonly isStatement: boolean;
  /** Says whether a request may be the title: it has no answer, or shares TAKEN_MIN words with its answer. */
  isSubject(request: string): boolean;
}

interface SessionFacts {
  readonly values: TermValues;
  /** The informative terms of all requests of the session. */
  readonly asked: ReadonlySet<string>;
}

/** Finds what an exchange can add to a title. */
function linesOf(exchange: TitledExchange, { values, asked }: SessionFacts): ExchangeLines {
  const lines = firstTold(exchange, (part, isTold) => soleSentences(part).filter(isTold));
  const sentences = sentencesAsked(exchange.asked);
  return {
    told: candidatesIn(lines, values, (title, naming) => scoreTold(title, naming, asked)),
    requests: candidatesIn(
      sentences.filter((sentence) => !isOfMoment(sentence)),
      values,
      scoreAsked,
    ),
    isStatement: isOneStatement(sentences),
    isSubject: (request) => {
      if (exchange.answered === '') return true;
      const answered = namingIn(exchange.answered);
      return [...namingIn(request)].filter((term) => answered.has(term)).length >= TAKEN_MIN;
    },
  };
}

interface TitleLimits {
  readonly said: Pick<SaidLines, 'has'>;
  readonly tokensMax: number;
}

function lineFrom(
  lines: ExchangeLines,
  names: readonly string[],
  { said, tokensMax }: TitleLimits,
): Scored | undefined {
  const told = bestOf(lines.told, { said, tokensMax: tokensMax - MARK_TOKENS });
  if (told === undefined) {
    return lines.isStatement ? requestFrom(lines, { said, tokensMax }) : undefined;
  }
  const left = tokensMax - ARROW_TOKENS - told.tokens;
  const about = hasName(told.title, names) ? '' : aboutNames(names, { tokensMax: left, most: 2 });
  if (about !== '') {
    return { title: `${about}${TITLE_ARROW}${told.title}`, score: told.score, hasNames: true };
  }
  // Quote the request only in a session without names: a request of a past day would read as an order.
  const request = names.length > 0 ? undefined : bestOf(lines.requests, { said, tokensMax: left });
  return request === undefined
    ? { title: `${ANSWER_MARK}${told.title}`, score: told.score }
    : { title: `${request.title}${TITLE_ARROW}${told.title}`, score: told.score + VALUE.asked };
}

function requestFrom(lines: ExchangeLines, limits: TitleLimits): Scored | undefined {
  const request = bestOf(lines.requests, limits);
  const isTitle = request !== undefined && (lines.isStatement || lines.isSubject(request.title));
  return isTitle ? { title: request.title, score: request.score + VALUE.untold } : undefined;
}

function bestOf(
  candidates: readonly Candidate[],
  { said, tokensMax }: TitleLimits,
): Candidate | undefined {
  let best: Candidate | undefined;
  for (const one of candidates) {
    if (one.tokens > tokensMax || one.score <= (best?.score ?? Number.NEGATIVE_INFINITY)) continue;
    if (!said.has(one.sentence)) best = one;
  }
  return best;
}

function candidatesIn(
  sentences: readonly string[],
  values: TermValues,
  valueOf: (title: string, naming: ReadonlySet<string>) => number,
): Candidate[] {
  return sentences.flatMap((sentence, at) => {
    const title = withoutPoliteness(plainLine(sentence));
    const tokens = estimateTextTokens(title);
    if (tokens > TITLE_TOKENS_MAX || isReply(sentence)) return [];
    // A question would look unanswered.
    if (kindOf(title) === 'question') return [];
    if (requestPointsBack(title) || isNoRequest(title)) return [];
    if (objectPointsBack(title) && !hasValue(title)) return [];
    const naming = namingIn(title);
    let shared = 0;
    for (const term of termsOf(title)) shared += values.get(term) ?? 0;
    if (naming.size < (shared > 0 || hasValue(title) ? NAMING_SHARED_MIN : NAMING_MIN)) return [];
    const score = shared + valueOf(title, naming) + VALUE.later * at;
    return [{ sentence, title, tokens, score }];
  });
}

function scoreAsked(title: string, naming: ReadonlySet<string>): number {
  // Prefer an order, because it says what the user wanted in the session.
  const isOrder = kindOf(title) === 'order';
  return VALUE.word * Math.min(WORDS_MAX, naming.size) + (isOrder ? VALUE.order : 0);
}

/** Scores a line of an answer; one that concludes nothing about what the user asked for is never chosen. */
function scoreTold(title: string, naming: ReadonlySet<string>, asked: ReadonlySet<string>): number {
  const about = [...naming].filter((term) => asked.has(term)).length;
  const isFinding = concludes(title);
  const isAbout = about > 0 || asked.size < ASKED_MIN;
  const isOutcome = (isFinding || SPECIFIC.test(title)) && IS_WHOLE.test(title);
  const isOpen = IS_OPEN.test(title) || kindOf(title) === 'order';
  if (!isAbout || !isOutcome || isOpen) return Number.NEGATIVE_INFINITY;
  const isChange = IS_CHANGE.test(title);
  return (
    Math.min(ABOUT_MAX, about) + (isFinding ? VALUE.finding : 0) + (isChange ? VALUE.change : 0)
  );
}

/** Returns the terms of a text that may name a subject. */
function namingIn(text: string): ReadonlySet<string> {
  return new Set(termsOf(text).filter((term) => isTelling(term) && !VAGUE.has(term)));
}

/** Matches a change: "Moved the lock". */
const IS_CHANGE = /^\p{Lu}\p{Ll}+ed\s/u;
/** Matches a line that states something: it ends like a sentence, begins with a past verb, or explains a name. */
const IS_WHOLE = /[.!。！]["'”’)\]]*$|^\p{Lu}\p{Ll}+ed\s|\S [–—-] (?:\S+ ){3,}/u;
/** Matches what is no outcome: a piece of a sentence, or a possibility. */
const IS_OPEN = /^\p{Ll}|\b(?:would|could|might|may)\b/u;
/** Fewest terms that may name a subject (see namingIn) in a title. */
const NAMING_MIN = 3;
/** Like NAMING_MIN, for a title that shares a term with the prompt, or has a value (see hasValue). */
const NAMING_SHARED_MIN = 2;
/** Stems of words that could be about any subject. */
const VAGUE = new Set(
  termsOf(
    'able another anything awesome back bit chunk comment complete completed different everything first good great kind ' +
      'last little local lot more new nice nothing obvious other others part piece place plan point pretty proper quite ' +
      'remember second separate similar simple small smaller some something somehow step steps straight stuff task thing ' +
      'things third valid way whole wonder wondering ' +
      // Steps from a change to its merge, which are the same for all changes.
      'conflict feedback outstanding parent rebase reply respond skill spawn subagent together worker worktree',
  ),
);
