import type { QuestionTerm } from './ranked.ts';
import { RANKING } from './ranking-weights.ts';

/** Weighs the words of a question by their rarity. */

/** Returns what a passage with the term scores for it: the term's weight times its inverse document frequency. */
export function valueOf({ weight, frequency }: QuestionTerm, passages: number): number {
  return weight * inverseFrequency(frequency, passages) ** RANKING.idfPower;
}

/**
 * Returns the inverse document frequency, always above zero. A memory of one record cannot show which words are rare
 * in the language. So the memory is assumed to have PRETENDED_PASSAGES more passages, all without the term.
 */
export function inverseFrequency(frequency: number, passages: number): number {
  const all = Math.max(passages, frequency) + PRETENDED_PASSAGES;
  return Math.log(1 + (all - frequency + 0.5) / (frequency + 0.5));
}

/**
 * With 200, inverseFrequency() returns 4.9 for a word in the only passage of a memory, and 1.6 for a word that all of
 * 50 passages have.
 */
const PRETENDED_PASSAGES = 200;
