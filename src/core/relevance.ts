import { inverseFrequency } from './ranking.ts';

/**
 * Whether a passage answers a question at all. The best of a bad lot is still bad: an empty answer
 * costs nothing, a wrong memory costs tokens and trust.
 */

/** Half of what the question is about, by how telling its words are. */
export const SHARE_MIN = 0.5;
/** A long prompt is about many things: a passage with so many of its rare words is about one. */
export const RARE_WORDS_ENOUGH = 3;
/** Words that nearly every passage holds prove nothing, however many of them match. */
export const RARE_WORDS_MIN = 0.35;
/** Words of everyday work count little: "fix the code" is not a question about every code. */
const EVERYDAY_WEIGHT = 0.35;

export interface Evidence {
  /** Sum over the question's words that were found, each from 0 (in all passages) to 1 (in none else). */
  readonly held: number;
  /** The same sum over all words of the question. */
  readonly asked: number;
}

export function isRelevant({ held, asked }: Evidence): boolean {
  if (held < RARE_WORDS_MIN) return false;
  return held >= RARE_WORDS_ENOUGH || held >= SHARE_MIN * asked;
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
