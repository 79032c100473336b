import { hasTerms } from './terms.ts';

/**
 * Recognises a text that only asks. Such a text is recalled with its answer or not at all: a
 * question alone does not help the model, and reads as if it had no answer.
 */

const SENTENCE_END = /\n+|(?<=[.!?])\s+|(?<=[。！？])/u;
const QUESTION_MARK = /[?？][\s"'”’)\]*_`]*$/u;
/** People often leave the mark out; with a full stop the same words may begin a statement. */
const ASKING =
  /^(?:(?:what|which|who|whose|where|why)\b|(?:when|how) (?:is|are|was|were|do|does|did|can|could|should|will|would|many|much|long|often)\b)[^.:!]*$/i;

export function onlyAsks(text: string): boolean {
  const telling = text
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => hasTerms(sentence, 1));
  return telling.length > 0 && telling.every(asks);
}

function asks(sentence: string): boolean {
  return QUESTION_MARK.test(sentence) || ASKING.test(sentence);
}
