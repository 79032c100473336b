import { shortReference } from '../memory/reference.ts';
import {
  clip,
  conclusionLines,
  isOneStatement,
  plainLine,
  type TermValues,
  withoutPoliteness,
} from './conclusions.ts';
import { ANSWER_MARK } from './recall-block.ts';
import { isReply, isTelling, ownWordsOf } from './own-words.ts';
import { SaidLines } from './said-lines.ts';
import { isPiece, kindOf, sentencesOf } from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * The brief that opens an agent's session: one line for each of the few earlier sessions that most
 * likely matter. Hardly any sign shows which first prompt needs memory, so each gets this little.
 */

/** As many as fit into the brief. */
export const SESSIONS_MAX = 4;
/** Sessions that say nothing new give their place to the next ones, up to so many. */
const CANDIDATES_MAX = 12;
/** With a date and a dash before each, four of them fill the brief. */
const TITLE_TOKENS_MAX = 14;
/** A statement is whole or of no use: its value comes at its end. A longer one is given by reference. */
const STATEMENT_TOKENS_MAX = 36;

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
): { readonly title: string; readonly exchange: Kind } | undefined {
  const requests = exchanges.flatMap((exchange) => {
    const own = ownWordsOf(exchange.asked);
    const isOnly = isOneStatement(own);
    return sentencesOf(own).map((sentence) => ({ exchange, sentence, isOnly }));
  });
  const asked = mostTelling(requests, values, said);
  if (asked !== undefined) return asked;
  const lines = exchanges.flatMap((exchange) =>
    conclusionLines(exchange.answered)
      .slice(0, LINES_MAX)
      .filter((sentence) => !KNOWS_NOTHING.test(sentence))
      .map((sentence) => ({ exchange, sentence, isOnly: false })),
  );
  const answered = mostTelling(lines, values, said);
  return answered && { ...answered, title: `${ANSWER_MARK}${answered.title}` };
}

function titleFrom(sentence: string, isOnly: boolean): string {
  const own = withoutPoliteness(plainLine(sentence));
  const isStated = isOnly && kindOf(own) === 'statement';
  const whole = isStated ? clip(own, STATEMENT_TOKENS_MAX) : undefined;
  return whole === own ? own : clip(own, TITLE_TOKENS_MAX);
}

/** Lines of an answer among which a title is looked for. */
const LINES_MAX = 4;
/** A model that had no answer. */
const KNOWS_NOTHING =
  /^(?:(?:sorry|unfortunately)\b.{0,20}?)?I(?: am|[’']m| do| can| could)? ?(?:n?(?:o|[’'])t (?:have|know|find|see|tell|say|sure|certain|determine)|unable|unsure)\b/i;
/** A word that names something, beside one of the prompt's. */
const WORD_VALUE = 0.5;
const WORDS_MAX = 8;
/** With fewer such words it is not clear what a sentence is about. */
const NAMING_MIN = 2;
/** A cut sentence may end before its point. */
const CUT_PENALTY = 2;
/** Its subject was named before it. */
const POINTS_BACK =
  /^(?:it|its|this|that|these|those|they|them|he|she|same|the (?:same|other|last|first) one|like|since|which|because)\b/i;

interface Found<Kind> {
  readonly exchange: Kind;
  readonly sentence: string;
  readonly isOnly: boolean;
}

/** The text of a cut sentence can be read by its reference. */
function mostTelling<Kind extends TitledExchange>(
  found: readonly Found<Kind>[],
  values: TermValues,
  said: Pick<SaidLines, 'has'>,
): { readonly title: string; readonly exchange: Kind } | undefined {
  let best: { readonly title: string; readonly exchange: Kind } | undefined;
  let bestScore = 0;
  for (const { exchange, sentence, isOnly } of found) {
    if (isReply(sentence) || said.has(sentence)) continue;
    const title = titleFrom(sentence, isOnly);
    const isCut = title.endsWith('…');
    if (POINTS_BACK.test(title) || (isPiece(title) && !isCut)) continue;
    const terms = new Set(termsOf(title));
    const naming = [...terms].filter(isTelling).length;
    if (naming < NAMING_MIN) continue;
    let score = WORD_VALUE * Math.min(WORDS_MAX, naming) - (isCut ? CUT_PENALTY : 0);
    for (const term of terms) score += values.get(term) ?? 0;
    if (score <= bestScore) continue;
    best = { exchange, title: isCut ? `${title} (${shortReference(exchange.ref)})` : title };
    bestScore = score;
  }
  return best;
}
