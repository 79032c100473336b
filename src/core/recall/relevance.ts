import type { Evidence, QuestionTerm } from './ranked.ts';
import { inverseFrequency } from './term-value.ts';

/**
 * Decides whether a passage answers a question at all. The best of many bad passages is still bad: an empty result
 * costs nothing, a wrong memory costs tokens and trust.
 */

/**
 * Least strength (see Evidence) of a passage that answers a question. On LoCoMo (see ranking-weights.ts) 0.35 loses
 * 0.1 % of the evidence and answers 12 % of the questions about other conversations; 0.4 loses 0.4 % and answers 10 %.
 * A threshold on the share of matching words that loses 0.1 % of the evidence answers 50 % of these questions.
 */
const STRENGTH_MIN = 0.35;
/**
 * Like STRENGTH_MIN, for a prompt that gives an order ("fix the test"). It asks for no knowledge, so only texts about
 * the same thing help. With 0.45, memories of the dialogues answered 2.7 % of the prompts of other dialogues, with
 * 0.55 1.7 %.
 */
const STRENGTH_OF_ORDER_MIN = 0.55;
/**
 * Minimum share of the question's words, weighted by rarity, that a passage must contain. A single word does not
 * suffice, even if it is repeated or the passages around it fit well. On LoCoMo 0.2 removes a fourth of the answers
 * to questions about other conversations, and loses no evidence.
 */
const COVERAGE_MIN = 0.2;
/** Minimum of `held * held / asked` (see Evidence) for each result, once one result answers the question. */
const SHARE_OTHERS_MIN = 0.02;
/** Least `held` (see Evidence) of an answer. Words that nearly every passage has prove nothing, however many match. */
const HELD_MIN = 0.35;
/**
 * Number of best results of which one must answer the question. The answer may rank below the passages around it, and
 * below earlier questions of the user.
 */
const JUDGED_FIRST = 5;
/**
 * Rarity of a name that the memory does not know: it counts as much as five other unknown words. Of LoCoMo's questions
 * about other conversations, recall answers 15 % with the value 3 and 12 % with 5; both values lose the same evidence.
 */
const UNKNOWN_NAME_RARITY = 5;
/** Factor on the rarity of words of everyday work: "fix the code" is not a question about all code. */
const EVERYDAY_WEIGHT = 0.35;

/** Returns the strength (see Evidence) that one of the best results must have. */
export function strengthNeeded(isQuestion: boolean): number {
  return isQuestion ? STRENGTH_MIN : STRENGTH_OF_ORDER_MIN;
}

/** Returns the results that fit the question, in order. Empty if none of the first JUDGED_FIRST answers it. */
export function keepRelevant<Kind extends { readonly evidence: Evidence }>(
  ranked: readonly Kind[],
  { isQuestion }: { readonly isQuestion: boolean },
): Kind[] {
  const strengthMin = strengthNeeded(isQuestion);
  const isAnswered = ranked.slice(0, JUDGED_FIRST).some(({ evidence }) => {
    const { held, asked, strength } = evidence;
    return held >= HELD_MIN && held >= COVERAGE_MIN * asked && strength >= strengthMin;
  });
  if (!isAnswered) return [];
  return ranked.filter(({ evidence: { held, asked } }) => {
    return asked > 0 && (held * held) / asked >= SHARE_OTHERS_MIN;
  });
}

/**
 * Returns how informative a word is: 1 if no passage has it, and less the more passages have it, down to about 0 in a
 * large memory. Everyday words get less.
 */
export function rarityOf(term: string, frequency: number, passages: number): number {
  const rarity = inverseFrequency(frequency, passages) / inverseFrequency(0, passages);
  return EVERYDAY_WORDS.has(term) ? rarity * EVERYDAY_WEIGHT : rarity;
}

/**
 * Raises the rarity of names that the memory does not know. Names have no synonyms, so the memory has nothing about
 * an unknown person. If it knows one name of the question, no rarity changes.
 */
export function rarerNames(
  terms: readonly QuestionTerm[],
  names: ReadonlySet<string>,
): readonly QuestionTerm[] {
  const isKnown = terms.some(({ term, frequency }) => frequency > 0 && names.has(term));
  if (isKnown || names.size === 0) return terms;
  return terms.map((one) => (names.has(one.term) ? { ...one, rarity: UNKNOWN_NAME_RARITY } : one));
}

/** Stems of the most frequent content words in prompts to coding agents and in small talk. */
export const EVERYDAY_WORDS: ReadonlySet<string> = new Set(
  `add ask back better bit call chang check code come continu creat current differ easi edit end exampl
  explain feel file find first fix function get give go good great happen help implement import issu keep
  kind know last like line list littl long look lot love made make mai mani mean mode much must name need
  new nice now old one open option part peopl place point possibl problem project put question rate read
  remov run said sai see set show someth start still stop take talk tell test text thing think thought
  time todai tri two understand updat us use user version wai want week well word work write wrong year`.split(
    /\s+/,
  ),
);
