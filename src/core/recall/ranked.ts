import type { Question } from './question.ts';

/** Input and output of the ranking: the shapes that its parts share. */

export interface Candidate {
  readonly id: number;
  readonly record: number;
  readonly role: 'user' | 'assistant';
  /** True if the passage is one of several of a long answer. */
  readonly isOfLongAnswer?: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly terms: readonly string[];
  /** The passages of which the candidate consists, in the order they were said, if there is more than one. */
  readonly parts: readonly Part[];
  /** The terms of the text directly before the candidate in its conversation; empty if there is none. */
  readonly previous: readonly string[];
  /** The terms of the text directly after it. */
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

/** A term of the question and its frequency in the memory. */
export interface QuestionTerm {
  readonly term: string;
  /** 1 for a term of the user's question, less for one of the text around it. */
  readonly weight: number;
  /** Number of passages with the term, in the spaces that are searched. */
  readonly frequency: number;
  /** How much evidence a match of the term gives, from 0 to 1; more for a name that the memory does not know. */
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
  /** Passages in the spaces that are searched. */
  readonly passages: number;
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
  /** Sum of the rarities (see QuestionTerm) of the question's terms that the candidate or a neighbour contains. */
  readonly held: number;
  /** The same sum over all terms of the question. */
  readonly asked: number;
  /** The score, divided by that of a passage that contains once every term with a rarity above 0. */
  readonly strength: number;
}
