import { hasTerms } from './terms.ts';

/**
 * What a sentence is good for when it stands alone in a block: it states, orders or asks, it holds a value,
 * or it is only a piece of a text. A question alone does not help the model, and reads as if it had no
 * answer; a piece takes the place of a sentence.
 */

/**
 * Where a sentence ends: behind its mark and a blank. The dot of an abbreviation or of the number of an item
 * is no end.
 */
const SENTENCE_END =
  /\n+|(?<!(?:^|\n)\s*(?:\d{1,3}|[A-Za-z])\.|(?:^|\s)(?:e\.g|i\.e|vs|etc|cf|approx|resp|z\.B|d\.h|bzw)\.)(?<=[.!?]["'”’)\]*_`]{0,3})\s+|(?<=[。！？])/u;

export function sentencesOf(text: string): string[] {
  return text
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}

const QUESTION_MARK = /[?？][\s"'”’)\]*_`]*$/u;
/** People often leave the mark out; with a full stop the same words may begin a statement. */
const ASKING =
  /^(?:(?:what|which|who|whose|where|why)\b|(?:when|how) (?:is|are|was|were|do|does|did|can|could|should|will|would|many|much|long|often)\b)[^.:!]*$/i;

export function onlyAsks(text: string): boolean {
  const telling = sentencesOf(text).filter((sentence) => hasTerms(sentence, 1));
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
  /^(?:(?:can|could|would|will) (?:you|we)\b|let['’]?s\b|i (?:want|need|would like|['’]d like) (?:you )?to\b|(?:we|you) (?:need|have|want) to\b|go ahead\b|(?:add|address|adjust|analy[sz]e|apply|ask|build|bump|change|check|clean|close|commit|compare|configure|continue|convert|copy|create|debug|delete|deploy|describe|do|document|draft|drop|edit|enable|explain|explore|extend|extract|find|finish|fix|format|generate|get|give|handle|help|implement|improve|install|integrate|investigate|list|look|make|merge|migrate|move|open|optimi[sz]e|plan|port|prepare|push|read|rebase|refactor|remove|rename|replace|research|resolve|restart|restore|review|rewrite|run|search|see|send|set|show|split|start|stop|suggest|summari[sz]e|switch|tell|test|try|update|upgrade|use|validate|verify|write)\b(?! (?:\S+ ){0,2}(?:is|are|was|were|has|have|had|needs?|must|can)\b))/i;

export type SentenceKind = 'statement' | 'order' | 'question';

export function kindOf(sentence: string): SentenceKind {
  if (onlyAsks(sentence)) return 'question';
  return ORDERING.test(sentence) ? 'order' : 'statement';
}

/** Whether a sentence states something: it neither asks nor orders. */
export function isStatement(sentence: string): boolean {
  return kindOf(sentence) === 'statement';
}

/** Names of files, functions, branches, numbers: what cannot be guessed. */
export const SPECIFIC = /`[^`]+`|\b\w+\.\w{1,4}\b|\b\w+[._/]\w+|[a-z][A-Z]|#\d+|\b\d{2,}\b/;
const SETTING = /\w=\S|\b[A-Z][A-Z\d_]{2,}\b|\d/;

/** Whether the text holds what cannot be guessed: a name of code, a setting, a figure. */
export function hasValue(text: string): boolean {
  return SPECIFIC.test(text) || SETTING.test(text);
}

/** A line of code or of a drawn tree says little without its file; the agent reads the file. */
const CODE =
  /[{;}(]\s*(?:\/\/.*)?$|^[$>]\s|^\/\/ |\s:=\s|^(?:const|let|var|func|return|import|if|for|git)\b.*[({=]/;
const DRAWN = /[─│├└┌╭╰╮╯┼═║]/;
/** A cell of a table needs its head, an arrow the steps before it. */
const ROW_OR_STEP = /^\||\|$|\s\|\s|^[→⇒↳]|^[-=]>\s/;
/** It goes on behind the line: a heading, half a list, a text that was cut when it was said. */
const GOES_ON =
  /[:：,，、([{–—&|/\\]$|(?:…|\.\.\.|\s-)$|\s(?:an|and|because|but|its|my|or|our|than|the|their|which|your|und|oder)$/;
/** Without a verb, so few words are a heading or a label. */
const LABEL_WORDS = 4;
/** Scripts without blanks: two characters are about a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]{1,2}|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]*[\p{L}\p{N}][^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]*/gu;

/** Whether a line of an answer, without its marks, is only a piece of the text, or a label of it. */
export function isFragment(line: string): boolean {
  const words = line.match(WORD)?.length ?? 0;
  const isLabel = words <= LABEL_WORDS && !/[.!?。！？]["'”’)\]*_`]*$/u.test(line);
  return isLabel || isPiece(line);
}

/** Output of a tool, a path, a slash command, an answer to a menu, a remark in brackets, a shell's prompt. */
const PASTED = /\S {2,}\S|\t|^[^\p{L}\p{N}"'“`#]|^\d+[,.)]|^\S+$|^\S+@\S+ /u;

/** The rest of a question that began in another sentence: "in the hooks of the gateway?" */
const ASKS_ON =
  /^(?:about|also|as|at|by|enough|for|from|in|like|of|on|plus|via|with)\b(?! (?:how|what|which|who|whose)\b)[^,]*[?？]$/i;
const ASKS_ON_WORDS = 7;

/** Whether a sentence of a request is only a label, a piece, or text that was pasted. */
export function isNoRequest(sentence: string): boolean {
  const isRest = ASKS_ON.test(sentence) && sentence.split(/\s+/).length <= ASKS_ON_WORDS;
  return isRest || PASTED.test(sentence) || isFragment(sentence);
}

/** Whether a line needs those around it. */
export function isPiece(line: string): boolean {
  return (
    DRAWN.test(line) ||
    ROW_OR_STEP.test(line) ||
    GOES_ON.test(line) ||
    CODE.test(line) ||
    isUnbalanced(line)
  );
}

/** A bracket or a quotation mark of code that does not close. */
function isUnbalanced(line: string): boolean {
  const count = (sign: string): number => line.split(sign).length - 1;
  return (
    count('`') % 2 === 1 ||
    count('(') > count(')') ||
    count('[') !== count(']') ||
    count('{') !== count('}')
  );
}
