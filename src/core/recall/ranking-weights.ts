/**
 * The weights of the ranking in one table, most with what other values lose, in points of recall. "LoCoMo" is a public
 * set of conversations: here its even-numbered ones, because the odd ones are the test set. "The dialogues" are
 * bench/recall/dialogues/: long answers, with facts in the user's words. "The evidence" is the lines that answer the
 * questions of a set. "In the block" is the share of the evidence that is among the recalled passages, and "R@10" the
 * share among the first ten. A value that suits several sets was preferred to the best one of a single set.
 */
export const RANKING = {
  /**
   * BM25: how soon a repeated word stops counting. Passages are short, so once is nearly enough. LoCoMo: 0.3 and 0.8
   * lose 0.3 to 0.6.
   */
  k1: 0.5,
  /**
   * BM25: how much the length of a passage lowers its score. LoCoMo: from 0.5 to 0.75 the recall in the block differs
   * by less than 0.2, but R@10 loses 0.2 with 0.6 and 1 with 0.75.
   */
  b: 0.5,
  /**
   * Exponent of the inverse document frequency. Below 1 a rare word outweighs ordinary words less; 1 changes nothing.
   * LoCoMo: 0.7 loses 0.9, 0.85 and 1 are alike in the block.
   */
  idfPower: 1,
  /**
   * Weights of a word that is in the passage before or after; a word of the passage itself weighs 1. LoCoMo: for the
   * passage before, 0.1 loses 1.3 and 0.5 loses 0.6; for the passage after, 0 loses 0.5 and 0.3 loses 1.3.
   */
  previousField: 0.3,
  nextField: 0.1,
  /**
   * Shares of the scores of the passages before and after that are added to a passage's score. LoCoMo: for the passage
   * before, 0 and 0.4 lose 0.8; for the passage after, 0.2 loses 0.4 and 0.6 loses 0.6.
   */
  previousScore: 0.2,
  nextScore: 0.4,
  /** The same share for passages two steps away. LoCoMo: 0 loses 0.4, 0.15 loses 0.2. */
  furtherScore: 0.1,
  /**
   * Share of a passage's score that depends on its own words, if it is one of several in a candidate. LoCoMo: 0 loses
   * 0.7. From 0.6 on answers are shown without their questions, which loses 2.
   */
  partShare: 0.2,
  /** Bonus for two words that are adjacent both in the question and in the passage. LoCoMo: 0.2 to 0.8 are alike. */
  pair: 0.4,
  /**
   * Factor for the user's words: without it they lose to long answers, which repeat the question's words. On a set of
   * chats with an assistant, 1.3 found 7 % more of the evidence than 1.
   */
  userRole: 1.3,
  /**
   * Factor for an answer of one passage: it states something, nearly as a user does, so it is just under `userRole`.
   * LoCoMo with its speakers as user and assistant: 1 loses 1.9 in the block and 7.6 of MRR. The dialogues, where all
   * answers are long, do not change.
   */
  shortAnswer: 1.25,
  /** Bonus for a time in the passage if the question asks "when". LoCoMo: 0.2 to 0.5 differ by at most 0.2. */
  when: 0.35,
  /** Bonus for a passage that names the question's date or is from that date. LoCoMo: 0.2 to 1 are alike. */
  date: 0.6,
  /** A passage from the question's month or year counts as having that word so many times. LoCoMo: 0 loses 0.4. */
  dateField: 0.5,
  /**
   * Penalty for similarity to a passage that was chosen before. LoCoMo: 0.1 to 0.5 are alike. It helps in memories with
   * many similar statements.
   */
  similar: 0.3,
  /**
   * Conditions for ranking the later of two statements before the earlier one: `change` for questions about the past,
   * `changeNow` for those about the present. `sameThing`: both must share at least this share of their words.
   * `nearlyAsGood`: the later one must have at least this share of the other's score. With these values the later one
   * ranks first for 29 of 30 changes in the dialogues, with 0.4 and 0.8 for only 17; LoCoMo does not change. R@10 of
   * LoCoMo loses 0.3 with 0.25 and 0.5 in `change`, and 1 if only the words of the question are compared.
   */
  change: { sameThing: 0.3, nearlyAsGood: 0.6 },
  changeNow: { sameThing: 0.25, nearlyAsGood: 0.4 },
  /**
   * Factor on a passage's score for each chosen passage of the same record. On a set of chats with an assistant, where
   * long answers would fill the block, it gains 2 % of the evidence.
   */
  sameRecord: 0.5,
  /** Weight of a term in `held` (see Evidence) if only the passage before or after contains it. */
  neighbourCoverage: 0.6,
  /** Bound on candidates that are compared with each other; others are dropped. A block of 512 tokens has about 20. */
  orderedMax: 32,
};
