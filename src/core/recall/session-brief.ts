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
import { isOfMoment, isStepOfExample, objectPointsBack, requestPointsBack } from './saying.ts';
import { hasValue, isNoRequest, kindOf, SPECIFIC } from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * Writes the list that opens an agent's session: one line for each of the few earlier sessions that most likely
 * matter. Hardly any sign shows which first prompt needs memory, so each gets this short list.
 */

/** Bound on sessions in the list: as many as its token limit allows. */
export const SESSIONS_MAX = 3;
/** Bound on sessions that are considered: one that says nothing new is replaced by the next. */
const CANDIDATES_MAX = 12;
/** Tokens for which one more session is listed: a line of fewer names no subject and no outcome. */
const SESSION_TOKENS = 19;
/** Token limit of a title where no list limits it. */
const TITLE_TOKENS_MAX = 36;
/** Tokens of the fence, its mark and the line above the titles; DATE_TOKENS are those of a date. */
const FRAME_TOKENS = 40;
const DATE_TOKENS = 9;
/** Tokens of the dash and the line end of a title. */
const LINE_TOKENS = 2;

export interface EarlierSession {
  /** When the session was last worked on, in milliseconds since 1970. */
  readonly at: number;
  readonly isSameBranch: boolean;
  /** Sum of the inverse document frequencies of the prompt's words that occur in the session. */
  readonly sharedWords: number;
  /** How well its best exchange fits the prompt, relative to the best exchange of all sessions: from 0 to 1. */
  readonly fit: number;
}

const SCORE = { branch: 3, wordsShare: 0.25, wordsMost: 6, newest: 4, fit: 2 };
const DAY_MS = 86_400_000;
/** Least fit of a session of another branch. Below it the session's line is mostly about something else. */
const FIT_ELSEWHERE_MIN = 0.6;

/**
 * Orders the sessions by branch, shared rare words, fit of the best exchange, and age. Leaves out sessions of other
 * branches that fit badly, unless no session fits, as after "hello".
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
  readonly exchange: Kind;
}

/** An earlier session of the list. */
export interface Listed<Kind> {
  /** The one branch that it worked on; '' if there are several, or if it says nothing. */
  readonly branch: string;
  /** Returns the session's title within a token limit. */
  titleWithin(tokensMax: number): Titled<Kind> | undefined;
}

/**
 * Divides the list's tokens equally among the sessions; what one leaves goes to those after it, then to those whose
 * lines were too long. With what is left, the best sessions are named by their branches, each branch once. `days`: on
 * how many days the sessions were.
 */
export function shareTitles<Kind>(
  sessions: readonly Listed<Kind>[],
  { briefTokensMax, days }: { readonly briefTokensMax: number; readonly days: number },
): (Titled<Kind> | undefined)[] {
  let left = briefTokensMax - FRAME_TOKENS - DATE_TOKENS * days;
  const listed = sessions.slice(0, Math.max(1, Math.floor(left / SESSION_TOKENS)));
  const titles: (Titled<Kind> | undefined)[] = [];
  for (const isAgain of [false, true]) {
    for (const [place, session] of listed.entries()) {
      if (titles[place] !== undefined) continue;
      const share = isAgain ? left : Math.floor(left / (listed.length - place));
      const one = session.titleWithin(Math.min(TITLE_TOKENS_MAX, share - LINE_TOKENS));
      titles[place] = one;
      if (one !== undefined) left -= LINE_TOKENS + estimateTextTokens(one.title);
    }
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

/** Returns a session's title within a token limit, which repeats none of the lines in `said`. */
export type TitleWithin<Kind> = (
  said: Pick<SaidLines, 'has'>,
  tokensMax?: number,
) => Titled<Kind> | undefined;

/**
 * Describes a session in one line: what an answer concluded about the things that the user asked for, after the
 * request if both fit. If no answer concluded anything, it is a request whose words the answer took up. Undefined if
 * there is neither, or if everything is already quoted. The exchanges are read once, for all titles.
 */
export function titlesOf<Kind extends TitledExchange>(
  exchanges: readonly Kind[],
  values: TermValues,
): TitleWithin<Kind> {
  const asked = namingIn(exchanges.map((one) => ownWordsOf(one.asked)).join('\n'));
  const read = exchanges.map((exchange) => ({ exchange, lines: linesOf(exchange, values, asked) }));
  return (said, tokensMax = TITLE_TOKENS_MAX) => {
    let best: (Titled<Kind> & Scored) | undefined;
    for (const { exchange, lines } of read) {
      const one = lineFrom(lines, { said, tokensMax });
      if (one !== undefined && one.score > (best?.score ?? Number.NEGATIVE_INFINITY)) {
        best = { exchange, ...one };
      }
    }
    return best && { exchange: best.exchange, title: best.title };
  };
}

/** What adds to a title's score, or subtracts from it. */
const VALUE = {
  word: 0.3,
  order: 1,
  finding: 1.5,
  change: 1,
  asked: 1,
  // An answer begins with what it did; details follow.
  later: -0.1,
  // A request alone, because most orders of a past day are done.
  untold: -100,
};
/** Bound on words that a title names, and on those of them that the user said, which count. */
const WORDS_MAX = 8;
const ABOUT_MAX = 3;
/** Fewest words of the requests by which a line is judged: after "ok, go" it may be about anything. */
const ASKED_MIN = 5;
/** Fewest words of a request that its answer takes up: a subject comes again, an order is carried out. */
const TAKEN_MIN = 2;
/** Tokens of the mark of an answer, and of what stands between a request and a conclusion. */
const MARK_TOKENS = 2;
const ARROW_TOKENS = 4;

interface Scored {
  readonly title: string;
  readonly score: number;
}

/** A sentence that can be a part of a title. */
interface Candidate extends Scored {
  /** As the exchange has it. */
  readonly sentence: string;
  readonly tokens: number;
}

/** What an exchange can add to a title. */
interface ExchangeLines {
  readonly told: readonly Candidate[];
  readonly requests: readonly Candidate[];
  /** True if the request is the session's subject, so that it is a title without a conclusion. */
  isSubject(request: string): boolean;
}

/** `asked`: the words of the session's requests that name something. */
function linesOf(
  exchange: TitledExchange,
  values: TermValues,
  asked: ReadonlySet<string>,
): ExchangeLines {
  const lines = firstTold(exchange, (part, isTold) => soleSentences(part).filter(isTold));
  const sentences = sentencesAsked(exchange.asked);
  return {
    told: candidatesIn(lines, values, (title, naming) => scoreTold(title, naming, asked)),
    requests: candidatesIn(
      sentences.filter((sentence) => !isOfMoment(sentence)),
      values,
      scoreAsked,
    ),
    isSubject: (request) => {
      if (exchange.answered === '' || isOneStatement(sentences)) return true;
      const answered = namingIn(exchange.answered);
      return [...namingIn(request)].filter((term) => answered.has(term)).length >= TAKEN_MIN;
    },
  };
}

interface TitleLimits {
  readonly said: Pick<SaidLines, 'has'>;
  readonly tokensMax: number;
}

function lineFrom(lines: ExchangeLines, { said, tokensMax }: TitleLimits): Scored | undefined {
  const told = bestOf(lines.told, { said, tokensMax: tokensMax - MARK_TOKENS });
  const left = told === undefined ? tokensMax : tokensMax - ARROW_TOKENS - told.tokens;
  const request = bestOf(lines.requests, { said, tokensMax: left });
  if (told !== undefined) {
    return request === undefined
      ? { title: `${ANSWER_MARK}${told.title}`, score: told.score }
      : { title: `${request.title}${TITLE_ARROW}${told.title}`, score: told.score + VALUE.asked };
  }
  if (request === undefined || !lines.isSubject(request.title)) return undefined;
  return { title: request.title, score: request.score + VALUE.untold };
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
    if (requestPointsBack(title) || isNoRequest(title) || isStepOfExample(title)) return [];
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
  // An order says what the user wanted in the session.
  const isOrder = kindOf(title) === 'order';
  return VALUE.word * Math.min(WORDS_MAX, naming.size) + (isOrder ? VALUE.order : 0);
}

/** Scores a line of an answer; one that concludes nothing about what the user asked for is never chosen. */
function scoreTold(title: string, naming: ReadonlySet<string>, asked: ReadonlySet<string>): number {
  const about = [...naming].filter((term) => asked.has(term)).length;
  const isFinding = concludes(title);
  const isAbout = about > 0 || asked.size < ASKED_MIN;
  const isOutcome = (isFinding || SPECIFIC.test(title)) && IS_WHOLE.test(title);
  const isOpen = IS_OPEN.test(title) || KNOWS_NOTHING.test(title) || kindOf(title) === 'order';
  if (!isAbout || !isOutcome || isOpen) return Number.NEGATIVE_INFINITY;
  const isChange = IS_CHANGE.test(title);
  return (
    Math.min(ABOUT_MAX, about) + (isFinding ? VALUE.finding : 0) + (isChange ? VALUE.change : 0)
  );
}

function namingIn(text: string): ReadonlySet<string> {
  return new Set(termsOf(text).filter((term) => isTelling(term) && !VAGUE.has(term)));
}

/** Matches a change: "Moved the lock". */
const IS_CHANGE = /^\p{Lu}\p{Ll}+ed\s/u;
/** Matches a line that states something: it ends like a sentence, begins with a past verb, or explains a name. */
const IS_WHOLE = /[.!。！]["'”’)\]]*$|^\p{Lu}\p{Ll}+ed\s|\S [–—-] (?:\S+ ){3,}/u;
/** Matches what is no outcome: a piece of a sentence, a possibility, work in progress. */
const IS_OPEN =
  /^(?:\p{Ll}|(?!This|Thus|Us)\p{Lu}\p{Ll}+(?<!s)s (?:an?|the|`)|\p{Lu}\p{Ll}+ed (?:across|at|by|for|from|in|of|on|per|to|with)\b)|\b(?:would|could|might|may)\b|\b(?:is|are) (?:\w+ )?(?:working on|running|waiting|in progress|creating)\b/u;
/** Matches an answer in which a model says that it does not know. */
const KNOWS_NOTHING =
  /^(?:(?:sorry|unfortunately)\b.{0,20}?)?I(?: am|[’']m| do| can| could)? ?(?:n?(?:o|[’'])t (?:have|know|find|see|tell|say|sure|certain|determine)|unable|unsure)\b/i;
/** Fewest naming words of a title; NAMING_SHARED_MIN if it shares a word with the prompt or has a value. */
const NAMING_MIN = 3;
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
