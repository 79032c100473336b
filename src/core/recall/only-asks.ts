import { hasTerms } from './terms.ts';

/**
 * Recognises a text that only asks or orders. Such a text is recalled with its answer or not at all: a
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

/**
 * A verb of work at the beginning of a sentence, where English puts an order. A noun of the same form
 * has its own verb soon after: "test coverage is low", "builds are slow".
 */
const ORDERING =
  /^(?:(?:can|could|would|will) (?:you|we)\b|let['’]?s\b|i (?:want|need|would like|['’]d like) (?:you )?to\b|(?:we|you) (?:need|have|want) to\b|go ahead\b|(?:add|address|adjust|analy[sz]e|apply|ask|build|bump|change|check|clean|close|commit|compare|configure|continue|convert|copy|create|debug|delete|deploy|describe|do|document|draft|drop|edit|enable|explain|explore|extend|extract|find|finish|fix|format|generate|get|give|handle|help|implement|improve|install|integrate|investigate|list|look|make|merge|migrate|move|open|optimi[sz]e|plan|port|prepare|push|read|rebase|refactor|remove|rename|replace|research|resolve|restart|restore|review|rewrite|run|search|see|send|set|show|split|start|stop|suggest|summari[sz]e|switch|tell|test|try|update|upgrade|use|validate|verify|write)\b(?! (?:\S+ ){0,2}(?:is|are|was|were|has|have|needs?|must|can)\b))/i;

/** Whether a sentence states something: it neither asks nor orders. */
export function isStatement(sentence: string): boolean {
  return !onlyAsks(sentence) && !ORDERING.test(sentence);
}
