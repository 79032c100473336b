import type { QuestionTerm } from './ranked.ts';
import { RANKING } from './ranking-weights.ts';

/** Weighs the words of a question by their rarity. */

/** Returns the score that a passage gains by having the term: the term's weight times its damped rarity. */
export function valueOf({ weight, frequency }: QuestionTerm, passages: number): number {
  return weight * inverseFrequency(frequency, passages) ** RANKING.idfPower;
}

/**
 * Returns the inverse document frequency, always above zero. A memory of one record cannot show which words are rare
 * in the language, so a few hundred further passages without the word are assumed.
 */
export function inverseFrequency(frequency: number, passages: number): number {
  const all = Math.max(passages, frequency) + PRETENDED_PASSAGES;
  return Math.log(1 + (all - frequency + 0.5) / (frequency + 0.5));
}

/**
 * Number of assumed passages. With 200, a word in the only passage of a memory scores 4.9, and a word in all of 50
 * passages still 1.6.
 */
const PRETENDED_PASSAGES = 200;
