import { estimateTextTokens } from '../bytes/tokens.ts';
import { shortReference } from '../memory/reference.ts';
import {
  clip,
  concludes,
  plainLine,
  soleSentences,
  type TermValues,
  withoutPoliteness,
} from './conclusions.ts';
import { ANSWER_MARK } from './recall-block.ts';
import { isReply, isTelling, sentencesAsked } from './own-words.ts';
import { SaidLines } from './said-lines.ts';
import { isStepOfExample, objectPointsBack, requestPointsBack } from './saying.ts';
import { hasValue, isNoRequest, kindOf } from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * Writes the list that opens an agent's session: one line for each of the few earlier sessions that most likely
 * matter. Hardly any sign shows which first prompt needs memory, so each gets this short list.
 */

/** Bound on sessions in the list: as many as its token limit allows. */
export const SESSIONS_MAX = 4;
/** Bound on sessions that are considered: one that says nothing new is replaced by the next. */
const CANDIDATES_MAX = 12;
/** Least tokens of a title: a shorter one names no subject. */
const TITLE_TOKENS_MIN = 8;
/** Token limit of a title: of a longer sentence the first clause is the title. */
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

/** Orders the sessions by branch, shared rare words, fit of the best exchange, and age. */
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

/**
 * Divides the list's tokens equally among the sessions. What they leave goes first to those that no short sentence of
 * the user names, then to cut titles. `days`: on how many days the sessions were. `titlesOf`: returns each session's
 * title within a token limit.
 */
export function shareTitles<Kind>(
  titlesOf: readonly ((tokensMax: number) => Titled<Kind> | undefined)[],
  { briefTokensMax, days }: { readonly briefTokensMax: number; readonly days: number },
): (Titled<Kind> | undefined)[] {
  const room = briefTokensMax - FRAME_TOKENS - DATE_TOKENS * days;
  const share = Math.max(TITLE_TOKENS_MIN, Math.floor(room / titlesOf.length) - LINE_TOKENS);
  const titles = titlesOf.map((titleWithin) => titleWithin(share));
  const sizeOf = (one: Titled<Kind> | undefined): number =>
    one === undefined ? 0 : LINE_TOKENS + estimateTextTokens(one.title);
  let left = room - titles.reduce((sum, one) => sum + sizeOf(one), 0);
  const isUnnamed = (one: Titled<Kind> | undefined): boolean =>
    one === undefined || one.title.startsWith(ANSWER_MARK);
  const isCut = (one: Titled<Kind> | undefined): boolean => one?.title.includes('…') === true;
  for (const wants of [isUnnamed, isCut]) {
    for (const [place, title] of titles.entries()) {
      const most = Math.min(TITLE_TOKENS_MAX, Math.max(0, sizeOf(title) - LINE_TOKENS) + left);
      if (!wants(title) || most <= share) continue;
      const longer = titlesOf[place]?.(most);
      if (longer === undefined || (title !== undefined && isUnnamed(longer))) continue;
      titles[place] = longer;
      left -= sizeOf(longer) - sizeOf(title);
    }
  }
  return titles;
}

/**
 * Finds the subject of a session in one line: the sentence of its requests that shares most with the prompt, or else
 * the most informative one. If the user only asked or steered ("9", "commit"), it is the answers' conclusion, after
 * ANSWER_MARK. Undefined if no sentence names a subject, if everything is already quoted, or if the model only said
 * that it does not know.
 */
export function titleOf<Kind extends TitledExchange>(
  exchanges: readonly Kind[],
  values: TermValues,
  said: Pick<SaidLines, 'has'> = new SaidLines(''),
  tokensMax = TITLE_TOKENS_MAX,
): Titled<Kind> | undefined {
  const requests = exchanges.flatMap((exchange) =>
    sentencesAsked(exchange.asked).map((sentence) => ({ exchange, sentence })),
  );
  const asked = mostTelling(requests, { values, said, tokensMax });
  if (asked !== undefined) return asked;
  const lines = exchanges.flatMap((exchange) =>
    soleSentences(exchange.answered)
      .slice(0, LINES_MAX)
      .filter((sentence) => isAbout(sentence, values) && !KNOWS_NOTHING.test(sentence))
      .map((sentence) => ({ exchange, sentence })),
  );
  const whole = lines.filter(({ sentence }) => IS_WHOLE.test(sentence));
  const question = { values, said, tokensMax };
  const answered = mostTelling(whole, question) ?? mostTelling(lines, question);
  return answered && { ...answered, title: `${ANSWER_MARK}${answered.title}` };
}

/**
 * Says whether a sentence of an answer names its subject: by a value, a name or a word of the prompt, or by a cause
 * or a decision. An agent's remark on its own work ("Research is thorough.") names nothing.
 */
function isAbout(sentence: string, values: TermValues): boolean {
  return (
    hasValue(sentence) ||
    HAS_NAME.test(sentence) ||
    concludes(sentence) ||
    termsOf(sentence).some((term) => values.has(term))
  );
}

/** Matches a sentence with its mark, or a change: "Moved the lock". In an answer all else may be a label. */
const IS_WHOLE = /[.!。！]["'”’)\]]*$|^\p{Lu}\p{Ll}+ed\s/u;
/** Matches a capital inside the sentence, or a letter of a script without capitals. */
const HAS_NAME = /\s\p{Lu}|\p{Lo}/u;

/** Returns the sentence, or its longest clause that fits with an ellipsis; '' if none fits. */
function titleFrom(own: string, tokensMax: number): string {
  const start = clip(own, tokensMax);
  if (start === own) return own;
  const isOrder = kindOf(own) === 'order';
  const [clause = ''] = (isOrder ? ORDER_CLAUSE : STATED_CLAUSE).exec(start) ?? [];
  return clause !== '' && (isOrder || HAS_VERB.test(clause)) ? `${clause}…` : '';
}

/** Matches the first clause of an order. It is complete after its object, because the verb comes first. */
const ORDER_CLAUSE =
  /^(?:\S+ ){2,}\S*[^\s,;:–—-](?=[,;:]?\s(?:[–—(-]|after|and|because|before|but|by|for|from|if|in|instead|into|on|or|since|so|using|via|when|where|which|while|with)[\s(]|[,;:]\s)/iu;
/** Matches the first clause of any other sentence that has several. Without a verb it would be only a subject. */
const STATED_CLAUSE =
  /^(?:\S+ ){2,}\S*[^\s,;:–—-](?=[,;:]?\s(?:[–—(-]|because|but|since|so|when|where|which|while)[\s(]|;\s|,\s(?:and|or)\s)/iu;
const HAS_VERB =
  /\b(?:are|can|could|does|did|do|has|have|had|is|must|need|needs|should|was|were|will|would)(?:n['’]t)?\b/i;

/** Bound on lines of an answer that are searched for a title. */
const LINES_MAX = 4;
/** Matches an answer in which a model says that it does not know. */
const KNOWS_NOTHING =
  /^(?:(?:sorry|unfortunately)\b.{0,20}?)?I(?: am|[’']m| do| can| could)? ?(?:n?(?:o|[’'])t (?:have|know|find|see|tell|say|sure|certain|determine)|unable|unsure)\b/i;
/** Score of each word of a title that names something and is not in the prompt. */
const WORD_VALUE = 0.5;
const WORDS_MAX = 8;
/** Fewest naming words of a title; NAMING_SHARED_MIN if it shares a word with the prompt or has a value. */
const NAMING_MIN = 3;
const NAMING_SHARED_MIN = 2;
/** Subtracted from a title's score: a cut title may end before its point, or lose a value. */
const CUT_PENALTY = 2;
const LOST_VALUE_PENALTY = 2;
/** Matches a number, a name or a piece of code in the part that was cut off. */
const LOST = /\d|`|\p{Lu}|[\w)]_\w|\w[./]\w/u;
/** Added to the score of a title that is an order, because it says what the user wanted in the session. */
const ORDER_VALUE = 1;
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

interface Found<Kind> {
  readonly exchange: Kind;
  readonly sentence: string;
}

interface TitleQuestion {
  readonly values: TermValues;
  readonly said: Pick<SaidLines, 'has'>;
  readonly tokensMax: number;
}

/** Returns the most informative title. A value that was cut off can be read by its reference. */
function mostTelling<Kind extends TitledExchange>(
  found: readonly Found<Kind>[],
  { values, said, tokensMax }: TitleQuestion,
): Titled<Kind> | undefined {
  let best: Titled<Kind> | undefined;
  let bestScore = 0;
  for (const { exchange, sentence } of found) {
    if (isReply(sentence) || said.has(sentence)) continue;
    const own = withoutPoliteness(plainLine(sentence));
    const kind = kindOf(own);
    // Skip a question: as a title it would look unanswered.
    if (kind === 'question') continue;
    const title = titleFrom(own, tokensMax);
    const isCut = title !== own;
    if (requestPointsBack(title) || isNoRequest(isCut ? title.slice(0, -1) : title)) continue;
    if (objectPointsBack(title) && !hasValue(title)) continue;
    if (isStepOfExample(title)) continue;
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
      (kind === 'order' ? ORDER_VALUE : 0) -
      (isCut ? CUT_PENALTY : 0) -
      (isLost ? LOST_VALUE_PENALTY : 0);
    if (score <= bestScore) continue;
    best = { exchange, title: isLost ? `${title} (${shortReference(exchange.ref)})` : title };
    bestScore = score;
  }
  return best;
}
