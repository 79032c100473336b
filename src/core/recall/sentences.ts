import { hasTerms } from './terms.ts';

/**
 * Classifies a sentence that is quoted alone: it states, orders or asks, it holds a value, or it is only a fragment.
 * A question alone does not help the model, and reads as if it had no answer; a fragment displaces a sentence.
 */

/**
 * Matches the end of a sentence: its mark and a space. The dot of an abbreviation or of a list number does not
 * count.
 */
const SENTENCE_END =
  /\n+|(?<!(?:^|\n)\s*(?:\d{1,3}|[A-Za-z])\.|(?:^|\s)(?:e\.g|i\.e|vs|etc|cf|approx|resp|re|z\.B|d\.h|bzw)\.)(?<=[.!?]["'”’)\]*_`]{0,3})\s+|(?<=[。！？])/u;

export function sentencesOf(text: string): string[] {
  return text
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}

const QUESTION_MARK = /[?？][\s"'”’)\]*_`]*$/u;
/**
 * Matches questions without a question mark, which people often omit. With a full stop the same words may begin a
 * statement.
 */
const ASKING =
  /^(?:(?:what|which|who|whose|where|why)\b|(?:when|how) (?:is|are|was|were|do|does|did|can|could|should|will|would|many|much|long|often)\b)[^.:!]*$/i;

export function onlyAsks(text: string): boolean {
  let isAsking = false;
  for (const sentence of sentencesOf(text)) {
    if (!hasTerms(sentence, 1)) continue;
    if (!asks(sentence)) return false;
    isAsking = true;
  }
  return isAsking;
}

function asks(sentence: string): boolean {
  return QUESTION_MARK.test(sentence) || ASKING.test(sentence);
}

/**
 * Matches an order: English puts the verb first. A noun of the same form is soon followed by a verb of its own:
 * "test coverage is low", "builds are slow".
 */
const ORDERING =
  /^(?:(?:can|could|would|will) (?:you|we)\b|let['’]?s\b|i (?:want|need|would like|['’]d like) (?:you )?to\b|(?:we|you) (?:need|have|want) to\b|go ahead\b|(?:add|address|adjust|analy[sz]e|apply|ask|build|bump|change|check|clean|close|commit|compare|configure|consider|continue|convert|copy|create|debug|delete|deploy|describe|do|document|draft|drop|edit|enable|explain|explore|extend|extract|find|finish|fix|format|generate|get|give|handle|help|implement|improve|install|integrate|investigate|list|look|make|merge|migrate|move|open|optimi[sz]e|plan|port|prepare|push|read|rebase|refactor|remove|rename|replace|research|resolve|restart|restore|review|rewrite|run|search|see|send|set|show|split|start|stop|suggest|summari[sz]e|switch|tell|test|try|update|upgrade|use|validate|verify|write)\b(?! (?:\S+ ){0,2}(?:is|are|was|were|has|have|had|needs?|must|can)\b))/i;

export type SentenceKind = 'statement' | 'order' | 'question';

export function kindOf(sentence: string): SentenceKind {
  if (onlyAsks(sentence)) return 'question';
  return ORDERING.test(sentence) ? 'order' : 'statement';
}

/** Says whether a sentence states something: it neither asks nor orders. */
export function isStatement(sentence: string): boolean {
  return kindOf(sentence) === 'statement';
}

/** Matches names of files and functions, branches and numbers: values that cannot be guessed. */
export const SPECIFIC = /`[^`]+`|\b\w+\.\w{1,4}\b|\b\w+[._/]\w+|[a-z][A-Z]|#\d+|\b\d{2,}\b/;
const SETTING = /\w=\S|\b[A-Z][A-Z\d_]{2,}\b|\d/;

/** Says whether a text holds a value that cannot be guessed: a name of code, a setting, a number. */
export function hasValue(text: string): boolean {
  return SPECIFIC.test(text) || SETTING.test(text);
}

/** Matches a line of code or of a drawn tree: it says little without its file, which the agent can read. */
const CODE =
  /[{;}(]\s*(?:\/\/.*)?$|^[$>]\s|^\/\/ |\s:=\s|^(?:const|let|var|func|return|import|if|for|git)\b.*[({=]/;
const DRAWN = /[─│├└┌╭╰╮╯┼═║]/;
/** Matches a table cell or an arrow: it is unclear without the table's head or the steps before it. */
const ROW_OR_STEP = /^\||\|$|\s\|\s|^[→⇒↳]|^[-=]>\s/;
/** Matches a line that continues in the next one: a heading, half a list, a text that was cut. */
const GOES_ON =
  /[:：,，、([{–—&|/\\]$|(?:…|\.\.\.|\s-)$|\s(?:an|and|because|but|its|my|or|our|than|the|their|which|your|und|oder)$/;
/** A line without a verb and with at most this many words is a heading or a label. */
const LABEL_WORDS = 4;
/** Matches a word. In scripts without spaces two characters are about a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]{1,2}|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]*[\p{L}\p{N}][^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]*/gu;

/** Says whether a line of an answer, without its marks, is only a fragment or a label. */
export function isFragment(line: string): boolean {
  const words = line.match(WORD)?.length ?? 0;
  const isLabel = words <= LABEL_WORDS && !/[.!?。！？]["'”’)\]*_`]*$/u.test(line);
  return isLabel || isPiece(line);
}

/**
 * Matches lines that no user typed as a request: tool output, a path, a slash command, a menu answer, a remark in
 * brackets, a shell prompt.
 */
const PASTED =
  /\S {2,}\S|\t|^[^\p{L}\p{N}"'“`#]|^\d+(?:[,.)]|:\d)|^\S+$|^\S+@\S+ |^In \[\d+\]:|^(?:from [\w.]+ )?import \w/u;
/** Matches a clause without its main clause: "if this is an edge case now", "which was on the quay". */
const SUBORDINATE = /^(?:although|because|if|unless|whereas|whether|which|while)\b[^,;–—]*$/iu;
/** A longer sentence may hold its main clause without a comma. */
const SUBORDINATE_WORDS = 8;

/** Matches the rest of a question from another sentence: "in the hooks of the gateway?" */
const ASKS_ON =
  /^(?:about|also|as|at|by|enough|for|from|in|like|of|on|plus|via|with)\b(?! (?:how|what|which|who|whose)\b)[^,]*[?？]$/i;
const ASKS_ON_WORDS = 7;

/** Says whether a sentence of a request is only a label, a fragment or pasted text. */
export function isNoRequest(sentence: string): boolean {
  const words = sentence.split(/\s+/).length;
  const isRest =
    (ASKS_ON.test(sentence) && words <= ASKS_ON_WORDS) ||
    (SUBORDINATE.test(sentence) && words <= SUBORDINATE_WORDS);
  return isRest || PASTED.test(sentence) || isFragment(sentence);
}

/** Says whether a line needs those around it. Code in backticks is whole: "Run `ps | grep quay` first." */
export function isPiece(line: string): boolean {
  const prose = line.replaceAll(/`[^`]+`/g, '`code`');
  return (
    DRAWN.test(prose) ||
    ROW_OR_STEP.test(prose) ||
    GOES_ON.test(prose) ||
    CODE.test(line) ||
    isUnbalanced(prose)
  );
}

/** Says whether a bracket or a quotation mark is not closed. */
function isUnbalanced(line: string): boolean {
  const count = (sign: string): number => line.split(sign).length - 1;
  return (
    count('`') % 2 === 1 ||
    count('(') > count(')') ||
    count('[') !== count(']') ||
    count('{') !== count('}')
  );
}
