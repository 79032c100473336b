import type { Question } from './question.ts';

export interface Candidate {
  readonly id: number;
  readonly record: number;
  readonly role: 'user' | 'assistant';
  /** True if the answer was cut into several passages, of which this is one. */
  readonly isOfLongAnswer?: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly terms: readonly string[];
  /** The passages of which the candidate consists, in text order; empty if it is a single passage. */
  readonly parts: readonly Part[];
  /** The terms of the text directly before the candidate in its conversation; empty if there is none. */
  readonly previous: readonly string[];
  /** The terms of the text directly after the candidate. */
  readonly next: readonly string[];
  /** The terms of the texts before `previous` and after `next`. */
  readonly earlier: readonly string[];
  readonly later: readonly string[];
}

export interface Part {
  readonly role: 'user' | 'assistant';
  readonly isOfLongAnswer?: boolean;
  readonly terms: readonly string[];
}

export interface QuestionTerm {
  readonly term: string;
  /** 1 for a term of the user's question, less for one of the text around it. */
  readonly weight: number;
  /** Number of passages with the term, in the spaces that are searched. */
  readonly frequency: number;
  /** How much evidence a match of the term gives: from 0 to 1, or UNKNOWN_NAME_RARITY; see relevance.ts. */
  readonly rarity: number;
}

export interface RankedQuestion extends Pick<
  Question,
  'pairs' | 'asksWhen' | 'asksForNow' | 'dates' | 'span'
> {
  /** Distinct terms. */
  readonly terms: readonly QuestionTerm[];
}

export interface Corpus {
  /** Number of passages in the spaces that are searched. */
  readonly passages: number;
  /** Mean number of terms in a passage. */
  readonly averageTerms: number;
}

export interface Ranked<Kind extends Candidate> {
  readonly candidate: Kind;
  readonly score: number;
  /** The factors that turn `score` into the score of each of the candidate's `parts`; [1] if it has none. */
  readonly shares: readonly number[];
  readonly evidence: Evidence;
}

/** How much of a question a candidate contains. */
export interface Evidence {
  /**
   * Sum of the rarities (see QuestionTerm) of the question's terms that the candidate contains. A term that only a
   * neighbour contains counts less, and a matching date counts like a common word.
   */
  readonly held: number;
  /** The highest possible `held`: that of a candidate with all terms and the date of the question. */
  readonly asked: number;
  /** The score, divided by the sum of all term values; see `#worth` in ranking.ts. */
  readonly strength: number;
}
