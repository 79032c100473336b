import { hasTerms } from './terms.ts';

/**
 * Classifies a sentence that may be quoted without its neighbours: as a statement, an order, a question, or a fragment.
 * A question without its answer does not help the model, and reads as if it had none. A fragment takes the place of a
 * useful sentence.
 */

/**
 * Matches what separates two sentences: a line end, or the space after a full stop, a question mark or an exclamation
 * mark. The dot of "e.g.", of some other abbreviations and of a list number does not end a sentence, nor do the dots
 * that end code.
 */
const SENTENCE_END =
  /\n+|(?<!(?:^|\n)\s*(?:\d{1,3}|[A-Za-z])\.|(?:^|\s)(?:e\.?g|i\.?e|vs|etc|cf|approx|resp|re|z\.B|d\.h|bzw)\.)(?<=[.!?]["'”’)\]*_`]{0,3})(?<!\.\.\.`)\s+|(?<=[。！？])/u;

export function sentencesOf(text: string): string[] {
  return text
    .split(SENTENCE_END)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}

const QUESTION_MARK = /[?？][\s"'”’)\]*_`]*$/u;
/** Matches questions without a question mark. With a full stop the same words may begin a statement. */
const ASKING =
  /^(?:(?:what|which|who|whose|where|why)\b|(?:when|how) (?:is|are|was|were|do|does|did|can|could|should|will|would|many|much|long|often)\b)(?:[^.:!]|[.:](?=\S))*$/i;
/** Matches a verb in front of its subject, which mostly shows a question: "how should I …", "does the lock …". */
const INVERTED = new RegExp(
  '^(?:(?:how|what|when|where|who|why) (?:am|are|can|could|did|do|does|has|have|is|should|was|were|will|would)' +
    '|am|are|did|does|has|is|was|(?:do|have|should)(?= (?:i|they|we|you)\\b)) ' +
    '(?:an?|i|it|my|our|that|the|there|these|they|this|those|we|you|your)\\b[^:]*$',
  'i',
);

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
  return [QUESTION_MARK, ASKING, INVERTED].some((one) => one.test(sentence));
}

/**
 * Matches an order: English puts the verb first. A noun of the same form is soon followed by a verb of its own:
 * "test coverage is low", "builds are slow".
 */
const ORDERING =
  /^(?:(?:can|could|would|will) you\b|can we\b|let['’]?s\b|i (?:want|need|would like|['’]d like) (?:you )?to\b|(?:we|you) (?:need|have|want) to\b|go ahead\b|(?:collect|compute|derive|display|execute|fall back|filter|iterate|load|pass|print|return|reuse|save|store) (?=(?:all|an?|any|by|each|existing|in|into|it|its|only|over|the|through|to|with)\b|[`\d])|(?:accept|add|address|adjust|adopt|analy[sz]e|apply|ask|attribute|build|bump|change|check|clean|clear|close|commit|compare|configure|consider|continue|convert|copy|create|debug|decide|define|delete|deploy|describe|detect|disable|do|document|draft|drop|edit|emit|enable|explain|explore|export|expose|extend|extract|find|finish|fix|follow|format|generate|get|give|handle|help|implement|improve|initiali[sz]e|install|integrate|introduce|investigate|invoke|list|look|make|merge|migrate|modify|move|open|optimi[sz]e|parse|plan|port|prepare|push|read|rebase|refactor|remove|rename|replace|research|resolve|restart|restore|review|rewrite|run|search|see|send|set|show|simplify|skip|split|start|stop|suggest|summari[sz]e|switch|tell|test|try|update|upgrade|use|validate|verify|wire|work on|wrap|write)\b(?! (?:\S+ ){0,2}(?:is|are|was|were|has|have|had|needs?|must|can)\b))/i;

export type SentenceKind = 'statement' | 'order' | 'question';

export function kindOf(sentence: string): SentenceKind {
  if (onlyAsks(sentence)) return 'question';
  return ORDERING.test(sentence) ? 'order' : 'statement';
}

export function isStatement(sentence: string): boolean {
  return kindOf(sentence) === 'statement';
}

/** Matches values that a reader cannot guess: names of files, functions and branches, and numbers. */
export const SPECIFIC = /`[^`]+`|\b\w+\.\w{1,4}\b|\b\w+[._/]\w+|[a-z][A-Z]|#\d+|\b\d{2,}\b/;
const SETTING = /\w=\S|\b[A-Z][A-Z\d_]{2,}\b|\d/;

/** Says whether a text has a value that a reader cannot guess: a name of code, a setting, a number. */
export function hasValue(text: string): boolean {
  return SPECIFIC.test(text) || SETTING.test(text);
}

/** Matches a line of code, which says little without its file. The agent can read the file. */
const CODE =
  /[{;}(]\s*(?:\/\/.*)?$|^[$>]\s|^\/\/ |\s:=\s|^(?:const|let|var|func|return|import|if|for|git)\b.*[({=]/;
const DRAWN = /[─│├└┌╭╰╮╯┼═║]/;
/** Matches code of nothing but box-drawing characters, "`╰`". Its sentence explains a picture that is not quoted. */
const DRAWN_CODE = /`[─━│┃├└┌╭╰╮╯┼═║\s]+`/;
/**
 * Matches a table cell, an arrow, a line of a diff, and what follows a dash or "e.g.": it is unclear without the text
 * around it.
 */
const ROW_OR_STEP = /^\+\s|^\||\|$|\s\|\s|^[→⇒↳]|^[-=]>\s|^[–—]\s|^(?:\.\.\.|…|(?:e\.g|i\.e)\.)/;
/** Matches a line that continues in the next one: a heading, half a list, a text that was cut. */
const GOES_ON =
  /[:：,，、([{–—&|/\\]$|(?:…|\.\.\.|\s-)$|\s(?:an|and|because|but|its|my|or|our|than|the|their|which|your|between|from|into|of|onto|per|via|und|oder)$|\s(?:e\.?g|i\.?e)\.$/;
/** A line with at most this many words, and without a sign that ends a sentence, is a heading or a label. */
const LABEL_WORDS = 4;
/** Matches a word. In scripts without spaces two characters are about a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]{1,2}|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]*[\p{L}\p{N}][^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]*/gu;

/** Says whether a line is only a fragment or a label. Pass it without Markdown. */
export function isFragment(line: string): boolean {
  const words = line.match(WORD)?.length ?? 0;
  const isLabel = words <= LABEL_WORDS && !/[.!?。！？]["'”’)\]*_`]*$/u.test(line);
  return isLabel || isPiece(line);
}

/**
 * Matches lines that are mostly no typed request: tool output, a path, a slash command, a menu answer, a single word, a
 * remark in brackets, a shell prompt, the message or banner of a program, the text behind a slash command.
 */
const PASTED =
  /\S {2,}\S|\t|^[^\p{L}\p{N}"'“`#]|^\d+(?:[,.)]|:\d)|^\S+$|^\S+@\S+ |^In \[\d+\]:|^(?:from [\w.]+ )?import \w|^(?:[Ee]rror|fatal|hint|[Ww]arning)(?:\[\w+\])?: |^(?:\d{1,2}|[Oo]ption [A-D\d]) (?:does(?:n['’]t)?|is|looks?|seems?|sounds?|works?)\b/u;
/** Matches the rest of a sentence: it begins with a preposition in lower case, with "which", or with "whether". */
const REST = /^(?:by|for|from|into|of|onto|than|via|with|which|[Ww]hether)\b[^,:;–—]*$/u;

export function isRest(sentence: string): boolean {
  return REST.test(sentence);
}

/** Says whether a sentence of a request is only a label, a fragment or pasted text. */
export function isNoRequest(sentence: string): boolean {
  return isRest(sentence) || PASTED.test(sentence) || isFragment(sentence);
}

/** Says whether a line is unclear without the lines around it; "Run `ps | grep quay` first." is clear. */
export function isPiece(line: string): boolean {
  const prose = line.replaceAll(/`[^`]+`/g, '`code`');
  return (
    DRAWN.test(prose) ||
    DRAWN_CODE.test(line) ||
    ROW_OR_STEP.test(prose) ||
    GOES_ON.test(prose) ||
    CODE.test(line) ||
    isUnbalanced(prose)
  );
}

/** Matches a closing bracket that needs no partner: that of an emoticon or of a list number ("a)"). */
const LONE_BRACKET = /[:;]['’]?-?\)|(?<=^|\s)\w{1,2}\)/g;

/** Says whether a bracket, a backtick or a double quotation mark has no partner. */
function isUnbalanced(line: string): boolean {
  const text = line.replaceAll(LONE_BRACKET, '');
  const count = (sign: string): number => text.split(sign).length - 1;
  return (
    count('`') % 2 === 1 ||
    count('"') % 2 === 1 ||
    ['()', '[]', '{}', '“”'].some(([open = '', close = '']) => count(open) !== count(close))
  );
}
