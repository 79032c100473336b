import { inverseFrequency } from './ranking.ts';

/**
 * Whether a passage answers a question at all. The best of a bad lot is still bad: an empty answer
 * costs nothing, a wrong memory costs tokens and trust.
 */

/**
 * What is held times its share of what is asked: one rare word is enough for a short question, a
 * long prompt needs several. On one half of a conversation set 0.1 stops 1 % of the questions whose
 * answer is there, 0.2 stops 3 %, 0.3 stopped 8 %.
 */
const STRENGTH_MIN = 0.1;
/** A single word may be a namesake ("autumn leaves", "the train leaves"), unless it is the question. */
const LONE_WORD_SHARE_MIN = 0.5;
/** Once one passage answers, others may add to it with less of their own. */
const STRENGTH_OTHERS_MIN = 0.02;
/** Words that nearly every passage holds prove nothing, however many of them match. */
const HELD_MIN = 0.35;
/** The answer need not be the very best one: neighbours and the person's own words rank higher. */
const JUDGED_FIRST = 5;
/** Words of everyday work count little: "fix the code" is not a question about every code. */
const EVERYDAY_WEIGHT = 0.35;

export interface Evidence {
  /** Sum over the question's words that were found, each from 0 (in all passages) to 1 (in none else). */
  readonly held: number;
  /** The same sum over all words of the question. */
  readonly asked: number;
  /** How many of the question's words were found. */
  readonly words: number;
}

/** Those that answer, in their order; none when not one of the first does so on its own. */
export function keepRelevant<Kind extends { readonly evidence: Evidence }>(
  ranked: readonly Kind[],
): Kind[] {
  const isAnswered = ranked.slice(0, JUDGED_FIRST).some(({ evidence }) => answers(evidence));
  if (!isAnswered) return [];
  return ranked.filter(({ evidence }) => strengthOf(evidence) >= STRENGTH_OTHERS_MIN);
}

function answers(evidence: Evidence): boolean {
  const { held, asked, words } = evidence;
  if (held < HELD_MIN || strengthOf(evidence) < STRENGTH_MIN) return false;
  return words > 1 || held >= LONE_WORD_SHARE_MIN * asked;
}

function strengthOf({ held, asked }: Evidence): number {
  return asked === 0 ? 0 : (held * held) / asked;
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
