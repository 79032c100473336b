import { estimateTextTokens } from '../bytes/tokens.ts';
import { shortReference } from '../memory/reference.ts';
import {
  clip,
  isOneStatement,
  plainLine,
  soleLines,
  type TermValues,
  withoutPoliteness,
} from './conclusions.ts';
import { ANSWER_MARK } from './recall-block.ts';
import { isReply, isTelling, ownLinesOf } from './own-words.ts';
import { SaidLines } from './said-lines.ts';
import { requestPointsBack } from './saying.ts';
import { hasValue, isNoRequest, kindOf, type SentenceKind, sentencesOf } from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * The brief that opens an agent's session: one line for each of the few earlier sessions that most
 * likely matter. Hardly any sign shows which first prompt needs memory, so each gets this little.
 */

/** As many as fit into the brief. */
export const SESSIONS_MAX = 4;
/** Sessions that say nothing new give their place to the next ones, up to so many. */
const CANDIDATES_MAX = 12;
/** A longer title of a session takes the place of another one's. */
const TITLE_TOKENS_MAX = 14;
/** With fewer tokens a title names no subject. */
const TITLE_TOKENS_MIN = 8;
/** A statement is whole or of no use: its value comes at its end. */
const STATEMENT_TOKENS_MAX = 36;
/** Tokens of the fence with its mark and of the line above the titles; and of the date of a day. */
const FRAME_TOKENS = 40;
const DATE_TOKENS = 9;
/** The dash and the line end of a title. */
const LINE_TOKENS = 2;

export interface EarlierSession {
  /** When it was worked on last, in milliseconds since 1970. */
  readonly at: number;
  readonly isSameBranch: boolean;
  /** Sum of the inverse frequencies of the prompt's words that were found in it. */
  readonly sharedWords: number;
  /** How well the best of its exchanges fits the prompt, from 0 to 1 for the best of all. */
  readonly fit: number;
}

const SCORE = { branch: 3, wordsShare: 0.25, wordsMost: 6, newest: 4, fit: 2 };
const DAY_MS = 86_400_000;

/** By branch, shared rare words, the fit of the best exchange, and how new they are. */
export function likeliestSessions<Kind extends EarlierSession>(
  sessions: readonly Kind[],
  now: number,
): Kind[] {
  return sessions
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

export interface TitledExchange {
  readonly ref: string;
  readonly asked: string;
  readonly answered: string;
}

export interface Titled<Kind> {
  readonly title: string;
  readonly exchange: Kind;
}

/** The longest title that is cut, and the longest that is whole. */
export interface TitleLimits {
  readonly cutMax: number;
  readonly wholeMax: number;
}

const TITLE_LIMITS: TitleLimits = { cutMax: TITLE_TOKENS_MAX, wholeMax: STATEMENT_TOKENS_MAX };

/**
 * Gives each session its equal share of the brief, and a statement that is longer what the others left.
 * `days`: how many days the sessions are from. `titlesOf`: the title of each session within limits.
 */
export function shareTitles<Kind>(
  titlesOf: readonly ((limits: TitleLimits) => Titled<Kind> | undefined)[],
  { briefTokensMax, days }: { readonly briefTokensMax: number; readonly days: number },
): (Titled<Kind> | undefined)[] {
  const room = briefTokensMax - FRAME_TOKENS - DATE_TOKENS * days;
  const share = Math.max(TITLE_TOKENS_MIN, Math.floor(room / titlesOf.length) - LINE_TOKENS);
  const cutMax = Math.min(TITLE_TOKENS_MAX, share);
  const titles = titlesOf.map((titleWithin) => titleWithin({ cutMax, wholeMax: cutMax }));
  const sizeOf = (one: Titled<Kind> | undefined): number =>
    one === undefined ? 0 : LINE_TOKENS + estimateTextTokens(one.title);
  let left = room - titles.reduce((sum, one) => sum + sizeOf(one), 0);
  return titles.map((title, place) => {
    const wholeMax = Math.min(STATEMENT_TOKENS_MAX, sizeOf(title) - LINE_TOKENS + left);
    const longer = wholeMax <= cutMax ? title : titlesOf[place]?.({ cutMax, wholeMax });
    left -= Math.max(0, sizeOf(longer) - sizeOf(title));
    return longer ?? title;
  });
}

/**
 * Finds the subject of a session in one line: the sentence of its requests that shares most with the
 * prompt, or that says most at all. Where the person only steered ("9", "commit"), it is the
 * conclusion of the answers, behind ANSWER_MARK. Undefined where no sentence names a subject, all is said
 * already, or the model only said that it does not know.
 */
export function titleOf<Kind extends TitledExchange>(
  exchanges: readonly Kind[],
  values: TermValues,
  said: Pick<SaidLines, 'has'> = new SaidLines(''),
  limits = TITLE_LIMITS,
): Titled<Kind> | undefined {
  const requests = exchanges.flatMap((exchange) => {
    const own = ownLinesOf(exchange.asked);
    const isOnly = isOneStatement(own);
    return sentencesOf(own).map((sentence) => ({ exchange, sentence, isOnly }));
  });
  const asked = mostTelling(requests, { values, said, limits });
  if (asked !== undefined) return asked;
  const lines = exchanges.flatMap((exchange) =>
    soleLines(exchange.answered)
      .slice(0, LINES_MAX)
      .filter((sentence) => isAbout(sentence, values) && !KNOWS_NOTHING.test(sentence))
      .map((sentence) => ({ exchange, sentence, isOnly: false })),
  );
  const answered = mostTelling(lines, { values, said, limits });
  return answered && { ...answered, title: `${ANSWER_MARK}${answered.title}` };
}

/**
 * Says whether a sentence names what it is about: a value, a name, or a word of the prompt. An agent's remark on its own
 * work ("Research is thorough.") names nothing.
 */
function isAbout(sentence: string, values: TermValues): boolean {
  return (
    hasValue(sentence) ||
    HAS_NAME.test(sentence) ||
    termsOf(sentence).some((term) => values.has(term))
  );
}

/** A capital inside the sentence; many scripts have none. */
const HAS_NAME = /\s\p{Lu}|\p{Lo}/u;

/** The sentence, or its first words and an ellipsis. */
function titleFrom(own: string, isOnly: boolean, { cutMax, wholeMax }: TitleLimits): string {
  const isStated = isOnly && kindOf(own) === 'statement';
  const whole = isStated ? clip(own, wholeMax) : undefined;
  const title = whole === own ? own : clip(own, cutMax);
  return title === own ? own : title.replace(LEADS_ON, '…');
}

/** Words and marks that only lead to what a cut leaves out. */
const LEADS_ON =
  /(?:[\s,;:(/–—-]|\s(?:an?|and|any|are|as|at|be|between|but|by|for|from|has|if|in|into|is|it|my|of|on|or|our|so|some|that|the|their|this|to|was|which|with|your))+…$/iu;

/** Lines of an answer among which a title is looked for. */
const LINES_MAX = 4;
/** A model that had no answer. */
const KNOWS_NOTHING =
  /^(?:(?:sorry|unfortunately)\b.{0,20}?)?I(?: am|[’']m| do| can| could)? ?(?:n?(?:o|[’'])t (?:have|know|find|see|tell|say|sure|certain|determine)|unable|unsure)\b/i;
/** A word that names something, beside one of the prompt's. */
const WORD_VALUE = 0.5;
const WORDS_MAX = 8;
/** With fewer such words it is not clear what a sentence is about, unless the prompt has one of them. */
const NAMING_MIN = 3;
const NAMING_SHARED_MIN = 2;
/** A cut sentence may end before its point; one that loses a value needs a line with its reference. */
const CUT_PENALTY = 2;
const LOST_VALUE_PENALTY = 2;
/** What is cut off has a figure, a name or a piece of code. */
const LOST = /\d|`|\p{Lu}|[\w)]_\w|\w[./]\w/u;
/** A session is about what the person wanted in it. A question is about what they did not know. */
const KIND_VALUES: Readonly<Record<SentenceKind, number>> = {
  order: 1,
  statement: 0,
  question: -1,
};
/** An order about what was said before: "break this up", "look at that, and go on". */
const OBJECT_BACK =
  /^(?:\S+ ){1,4}?(?:this|that|it|these|those|them)(?=$|[,.!?;…]|\s(?:and|again|also|as|at|by|down|for|here|in|instead|into|now|on|or|out|please|so|to|too|up|with|work)\b)/i;
/** Words that could be of any subject, as stems. */
const VAGUE = new Set(
  termsOf(
    'able another anything awesome back bit chunk comment complete completed different everything first good great kind ' +
      'last little local lot more new nice other others part piece place plan point pretty proper remember second separate ' +
      'similar simple small smaller some something step steps stuff task thing things third valid way whole wonder wondering',
  ),
);

interface Found<Kind> {
  readonly exchange: Kind;
  readonly sentence: string;
  readonly isOnly: boolean;
}

interface TitleQuestion {
  readonly values: TermValues;
  readonly said: Pick<SaidLines, 'has'>;
  readonly limits: TitleLimits;
}

/** A value that is cut off can be read by the reference. */
function mostTelling<Kind extends TitledExchange>(
  found: readonly Found<Kind>[],
  { values, said, limits }: TitleQuestion,
): Titled<Kind> | undefined {
  let best: Titled<Kind> | undefined;
  let bestScore = 0;
  for (const { exchange, sentence, isOnly } of found) {
    if (isReply(sentence) || said.has(sentence)) continue;
    const own = withoutPoliteness(plainLine(sentence));
    const title = titleFrom(own, isOnly, limits);
    const isCut = title !== own;
    if (requestPointsBack(title) || isNoRequest(isCut ? title.slice(0, -1) : title)) continue;
    if (OBJECT_BACK.test(title) && !hasValue(title)) continue;
    const terms = new Set(termsOf(title));
    const naming = [...terms].filter((term) => isTelling(term) && !VAGUE.has(term)).length;
    let shared = 0;
    for (const term of terms) shared += values.get(term) ?? 0;
    const least = shared > 0 || hasValue(title) ? NAMING_SHARED_MIN : NAMING_MIN;
    if (naming < least) continue;
    const isLost = isCut && LOST.test(own.slice(title.length - 1));
    const score =
      WORD_VALUE * Math.min(WORDS_MAX, naming) +
      shared +
      KIND_VALUES[kindOf(own)] -
      (isCut ? CUT_PENALTY : 0) -
      (isLost ? LOST_VALUE_PENALTY : 0);
    if (score <= bestScore) continue;
    best = { exchange, title: isLost ? `${title} (${shortReference(exchange.ref)})` : title };
    bestScore = score;
  }
  return best;
}
