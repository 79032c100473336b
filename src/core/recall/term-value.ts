import type { QuestionTerm } from './ranked.ts';
import { RANKING } from './ranking-weights.ts';

/** How much a word of a question counts, by how rare it is. */

/** The gain of one passage from holding the term: its weight times how rare it is, damped. */
export function valueOf({ weight, frequency }: QuestionTerm, passages: number): number {
  return weight * inverseFrequency(frequency, passages) ** RANKING.idfPower;
}

/**
 * Always above zero. A store of one record must know that its words are rare in the language, so a
 * few hundred passages without them are pretended.
 */
export function inverseFrequency(frequency: number, passages: number): number {
  const all = Math.max(passages, frequency) + PRETENDED_PASSAGES;
  return Math.log(1 + (all - frequency + 0.5) / (frequency + 0.5));
}

/** With 200, a word in one of one passages counts 4.9 and one in 50 of 50 still 1.7. */
const PRETENDED_PASSAGES = 200;
