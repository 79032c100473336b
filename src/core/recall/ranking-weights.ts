/**
 * All numbers of the ranking in one table, each with what other values lose, in points of recall. "LoCoMo" means its
 * even conversations; the odd ones are the test set. "The dialogues" are bench/recall/dialogues/: long answers, with
 * facts in the user's words. "In the block" counts the evidence among the recalled passages, and "R@10" that among
 * the first ten. A value that suits several sets was preferred to the best one of a single set.
 */
export const RANKING = {
  /**
   * BM25: how soon a repeated word stops counting. Passages are short, so once is nearly enough. LoCoMo: 0.3 and 0.8
   * lose 0.3 to 0.6.
   */
  k1: 0.5,
  /**
   * BM25: how much a long passage is held back. LoCoMo: 0.5 to 0.75 within 0.2 in the block, 0.6 loses 0.2 of R@10,
   * 0.75 loses 1.
   */
  b: 0.5,
  /**
   * Exponent that damps rare words, so that one of them does not outweigh a phrase of ordinary ones; 1 does not damp.
   * LoCoMo: 0.7 loses 0.9, 0.85 and 1 are alike in the block.
   */
  idfPower: 1,
  /**
   * Weight of a word in the passage before, and in the one after, as if it were in this one. LoCoMo: 0.1 and 0.5 lose
   * 1.3 and 0.6 before, 0 and 0.3 lose 0.5 and 1.3 after.
   */
  previousField: 0.3,
  nextField: 0.1,
  /**
   * Share of the score of the passage before, and of the one after, that is added to a passage's score. LoCoMo: 0 and
   * 0.4 lose 0.8 before, 0.2 and 0.6 lose 0.4 and 0.6 after.
   */
  previousScore: 0.2,
  nextScore: 0.4,
  /** The same share for passages two steps away. LoCoMo: 0 loses 0.4, 0.15 loses 0.2. */
  furtherScore: 0.1,
  /**
   * Share of a passage's score that depends on its own words, if it is ranked within a candidate. LoCoMo: 0 loses
   * 0.7. From 0.6 on answers are shown without their questions, which loses 2.
   */
  partShare: 0.2,
  /** Bonus for two words that are adjacent both in the question and in the passage. LoCoMo: 0.2 to 0.8 within 0.3. */
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
  /** Bonus for a time in the passage if the question asks "when". LoCoMo: 0.2 to 0.5 are alike within 0.2. */
  when: 0.35,
  /** Bonus for a date of the question that the passage names or was said on. LoCoMo: 0.2 to 1 are alike. */
  date: 0.6,
  /** Times that a passage counts as holding the question's month or year, if it was said then. LoCoMo: 0 loses 0.4. */
  dateField: 0.5,
  /**
   * Penalty for similarity to a passage that was chosen before. LoCoMo: 0.1 to 0.5 are alike. It helps in memories with
   * many similar statements.
   */
  similar: 0.3,
  /**
   * When the later of two statements goes before the earlier one: for a question about the past, and for one about the
   * present. `sameThing`: the share of common words from which on both are about the same thing. `nearlyAsGood`: the
   * later one goes first if its score is at least this share of the other's. With these values 29 of the dialogues' 30
   * changes come first, with 0.4 and 0.8 for both only 17; LoCoMo does not change. With 0.25 and 0.5 for questions
   * about the past too, LoCoMo loses 0.3 of R@10. Comparing only the words of the question loses 1 % there.
   */
  change: { sameThing: 0.3, nearlyAsGood: 0.6 },
  changeNow: { sameThing: 0.25, nearlyAsGood: 0.4 },
  /**
   * Factor per passage of the same record that was chosen before. On a set of chats with an assistant, where long
   * answers would fill the block, it gains 2 % of the evidence.
   */
  sameRecord: 0.5,
  /** Weight of a word for the relevance threshold if only a neighbour holds it. */
  neighbourCoverage: 0.6,
  /** Bound on candidates that are compared with each other: 512 tokens hold about 20. */
  orderedMax: 32,
};
