import type { Evidence } from './ranked.ts';
import { inverseFrequency } from './term-value.ts';

/**
 * Whether a passage answers a question at all. The best of a bad lot is still bad: an empty answer
 * costs nothing, a wrong memory costs tokens and trust.
 */

/**
 * The share of what is asked that a unit holds, by how telling the words are. On the even half of
 * LoCoMo 0.15 loses 0.6 % of the evidence and answers 43 % of the questions of other conversations,
 * 0.1 loses 0.3 % and answers 51 %, 0.23 loses 3 % and answers 30 %: people's lives are alike. Of
 * prompts to coding agents it answers 14 % there.
 */
const COVERAGE_MIN = 0.15;
/**
 * Who gives an order does not ask the memory: only what is about the same thing helps. Stores of
 * coding conversations answered 25 % of foreign prompts with 0.15 and 8 % with 0.3.
 */
const COVERAGE_OF_ORDER_MIN = 0.3;
/** A single word may be a namesake ("autumn leaves", "the train leaves"), unless it is the question. */
const LONE_WORD_SHARE_MIN = 0.5;
/** Once one unit answers, others may add to it with less of their own. */
const STRENGTH_OTHERS_MIN = 0.02;
/** Words that nearly every passage holds prove nothing, however many of them match. */
const HELD_MIN = 0.35;
/** The answer need not be the very best one: neighbours and the person's own words rank higher. */
const JUDGED_FIRST = 5;
/** Words of everyday work count little: "fix the code" is not a question about every code. */
const EVERYDAY_WEIGHT = 0.35;

/** Those that answer, in their order; none when not one of the first does so on its own. */
export function keepRelevant<Kind extends { readonly evidence: Evidence }>(
  ranked: readonly Kind[],
  { isQuestion }: { readonly isQuestion: boolean },
): Kind[] {
  const coverageMin = isQuestion ? COVERAGE_MIN : COVERAGE_OF_ORDER_MIN;
  const isAnswered = ranked
    .slice(0, JUDGED_FIRST)
    .some(({ evidence }) => evidence.held >= HELD_MIN && coverageOf(evidence) >= coverageMin);
  if (!isAnswered) return [];
  return ranked.filter(({ evidence: { held, asked } }) => {
    return asked > 0 && (held * held) / asked >= STRENGTH_OTHERS_MIN;
  });
}

function coverageOf({ held, asked, words, wordsBeside }: Evidence): number {
  if (asked === 0) return 0;
  const share = held / asked;
  if (share >= LONE_WORD_SHARE_MIN) return share;
  if (words + wordsBeside < 2) return 0;
  // What stands beside may be about something else: two of the words must be its own.
  return share * Math.min(1, words / 2);
}

/** How telling a word is, from 0 to 1: 1 for one that no passage holds. */
export function rarityOf(term: string, frequency: number, passages: number): number {
  const rarity = inverseFrequency(frequency, passages) / inverseFrequency(0, passages);
  return EVERYDAY_WORDS.has(term) ? rarity * EVERYDAY_WEIGHT : rarity;
}

/** Stems of the most frequent content words of prompts to coding agents and of small talk. */
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
