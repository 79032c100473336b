import type { Question } from './question.ts';

/** Input and output of the ranking: the shapes that its parts share. */

export interface Candidate {
  readonly id: number;
  readonly record: number;
  readonly role: 'user' | 'assistant';
  /** One passage of an answer that has more. */
  readonly isOfLongAnswer?: boolean;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly terms: readonly string[];
  /** The passages of which it is made, where it is more than one, in the order they were said. */
  readonly parts: readonly Part[];
  /** The texts just before and after, in the same conversation; empty at its ends. */
  readonly previous: readonly string[];
  readonly next: readonly string[];
  /** The texts before the previous and after the next. */
  readonly earlier: readonly string[];
  readonly later: readonly string[];
}

export interface Part {
  readonly role: 'user' | 'assistant';
  readonly isOfLongAnswer?: boolean;
  readonly terms: readonly string[];
}

/** A term of the question and how often it is said elsewhere. */
export interface QuestionTerm {
  readonly term: string;
  /** 1 for the person's question, less for the text around it. */
  readonly weight: number;
  /** Passages that hold it, in the spaces that are searched. */
  readonly frequency: number;
  /** How much finding it proves, from 0 to 1; more for a name that the memory does not know. */
  readonly rarity: number;
}

export interface RankedQuestion extends Pick<
  Question,
  'pairs' | 'asksWhen' | 'asksForNow' | 'dates' | 'span'
> {
  /** Distinct. */
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
  /** Shares of the score, by part: from 0 to 1. */
  readonly shares: readonly number[];
  readonly evidence: Evidence;
}

/** The part of a question that a unit holds. */
export interface Evidence {
  /** Sum over the question's words that were found, each from 0 (in all passages) to 1 (in none else). */
  readonly held: number;
  /** The same sum over all words of the question. */
  readonly asked: number;
  /** The score as a share of what a passage gets by its words that says all that counts once. */
  readonly strength: number;
}
