import { shortReference } from '../memory/reference.ts';
import {
  clip,
  conclusionLines,
  hasValue,
  isOneStatement,
  sentencesOf,
  type TermValues,
  withoutPoliteness,
} from './conclusions.ts';
import { isReply, isTelling, ownWordsOf } from './own-words.ts';
import { isStatement } from './only-asks.ts';
import { SaidLines } from './said-lines.ts';
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
const TITLE_TOKENS_MAX = 12;
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
 * conclusion of the answers. Undefined where all of it is said already, and where the model only said that
 * it does not know.
 */
export function titleOf<Kind extends TitledExchange>(
  exchanges: readonly Kind[],
  values: TermValues,
  said: Pick<SaidLines, 'has'> = new SaidLines(''),
): { readonly title: string; readonly exchange: Kind } | undefined {
  const requests = exchanges.flatMap((exchange) =>
    sentencesOf(ownWordsOf(exchange.asked))
      .filter((sentence) => !isReply(sentence))
      .map((sentence) => ({ exchange, sentence, isOnly: isOneStatement(exchange.asked) })),
  );
  const found =
    requests.length > 0
      ? requests
      : exchanges.flatMap((exchange) =>
          conclusionLines(exchange.answered)
            .slice(0, LINES_MAX)
            .filter((sentence) => !KNOWS_NOTHING.test(sentence))
            .map((sentence) => ({ exchange, sentence, isOnly: false })),
        );
  const news = found.filter(({ sentence }) => !said.has(sentence));
  const best = mostTelling(news, values);
  if (best === undefined) return undefined;
  const { exchange } = best;
  const title = titleFrom(best.sentence, best.isOnly);
  const own = withoutPoliteness(best.sentence);
  const isCut = title.endsWith('…') && isStatement(own) && hasValue(own.slice(title.length - 1));
  // The value can be read by its reference. A question or an order that is cut still names its subject.
  return { title: isCut ? `${title} (${shortReference(exchange.ref)})` : title, exchange };
}

function titleFrom(sentence: string, isOnly: boolean): string {
  const own = withoutPoliteness(sentence);
  const whole = isOnly ? clip(own, STATEMENT_TOKENS_MAX) : undefined;
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

function mostTelling<Kind extends { readonly sentence: string }>(
  found: readonly Kind[],
  values: TermValues,
): Kind | undefined {
  let best: Kind | undefined;
  let bestScore = 0;
  for (const one of found) {
    const { sentence } = one;
    const terms = new Set(termsOf(sentence));
    let score = WORD_VALUE * Math.min(WORDS_MAX, [...terms].filter(isTelling).length);
    for (const term of terms) score += values.get(term) ?? 0;
    if (score <= bestScore) continue;
    best = one;
    bestScore = score;
  }
  return best;
}
