/** Every number of the ranking in one table. They were fitted on one half of each data set only. */
export interface RankingWeights {
  /** BM25: how soon a repeated word stops counting. Passages are short: once is nearly enough. */
  readonly k1: number;
  /** BM25: how much a long passage is held back. */
  readonly b: number;
  /** Damps rare words, so that one of them does not outweigh a phrase of ordinary ones. */
  readonly idfPower: number;
  /** What a word in the passage before, or after, counts, as if it were said in this one. */
  readonly previousField: number;
  readonly nextField: number;
  /** Share of a neighbour's own score that is added. */
  readonly previousScore: number;
  readonly nextScore: number;
  /** For two words that stand side by side in the question and in the passage. */
  readonly pair: number;
  /** What the person said outranks what the assistant said. */
  readonly userRole: number;
  /** "when" in the question and a time in the passage. */
  readonly when: number;
  /** A date in the question and the same date in or of the passage. */
  readonly date: number;
  /** Penalty for likeness to a passage that was chosen before. */
  readonly similar: number;
  /** Two statements with so many words in common are about the same thing: the later one comes first, */
  readonly sameThing: number;
  /** if it is nearly as good an answer. */
  readonly nearlyAsGood: number;
  /** Factor for a further passage of the same record. */
  readonly sameRecord: number;
  /** What a word counts for the relevance floor when only a neighbour holds it. */
  readonly neighbourCoverage: number;
  /** Candidates that are compared with each other: 512 tokens hold about 20. */
  readonly orderedMax: number;
}

export const RANKING: RankingWeights = {
  k1: 0.5,
  b: 0.6,
  idfPower: 0.85,
  previousField: 0.3,
  nextField: 0.1,
  previousScore: 0.2,
  nextScore: 0.4,
  pair: 0.4,
  userRole: 1.3,
  when: 0.2,
  date: 0.6,
  similar: 0.3,
  sameThing: 0.4,
  nearlyAsGood: 0.8,
  sameRecord: 0.5,
  neighbourCoverage: 0.6,
  orderedMax: 32,
};
