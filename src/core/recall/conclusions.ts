import { Known } from '../bytes/known.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { isStatement, onlyAsks } from './only-asks.ts';
import { isReply, isTelling, ownWordsOf } from './own-words.ts';
import { SaidLines } from './said-lines.ts';
import { termsOf } from './terms.ts';

/**
 * The lines of an exchange that are worth a place in an agent's prompt: the sentence of the
 * request, and the lines of the answer's end that fit the question. In 23 of 25 cases of a study
 * the answer's end held the needed fact, mostly in one line; the best-matching passage held it half
 * as often.
 */

export interface Quote {
  readonly role: 'user' | 'assistant';
  /** Whole lines of the text that follow each other, without marks of emphasis and headings. */
  readonly text: string;
}

/** By term: what a line gains that holds it. */
export type TermValues = ReadonlyMap<string, number>;

/** The end of an answer: what was said before it was said on the way. */
const CONCLUSION_CHARS = 4000;
const CONCLUSION_CHARS_MIN = 200;
const LINES_MAX = 80;
const TOKEN_CHARS_MAX = 12;
const REQUEST_TOKENS_MAX = 13;
/** A shorter line is not useful, even if there is room. */
const ROOM_MIN = 8;
/** The line end and the mark of the assistant before a line. */
const MARK_TOKENS = 3;

const ON_THE_WAY =
  /\b(?:let me (?!know)|i['’]ll (?:now|first|start|also|check|look|add|update|run|fix)|now i (?:need|will)|i need to (?:check|look|see|find|update|fix))/i;
const CONCLUDES =
  /root cause|because|decid|instead|never\b|must\b|fix(?:ed)?:|design|note:|turns out|caused by|reason/i;
const ANNOUNCES =
  /^(?:(?:ok(?:ay)?|now|next|first|then|so)\b[,.!]? )?(?:let me|let's|i['’]ll|i will|i need to|i should|now i|good\b|great\b|perfect\b|excellent\b|pushed\W*$|committed\W*$|all (?:done|clean|clear|green)|all tests pass|done\b\W|here['’]?s|summary|want me to|would you like|shall i|should i)/i;
/** Names of files, functions, branches, numbers: what cannot be guessed. */
const SPECIFIC = /`[^`]+`|\b\w+\.\w{1,4}\b|\b\w+[._/]\w+|[a-z][A-Z]|#\d+|\b\d{2,}\b/;

/** A line of code or of a drawn tree says little without its file; the agent reads the file. */
const CODE =
  /[{;}(]\s*(?:\/\/.*)?$|^[$>]\s|^[├└│┌╭╰]|^\/\/ |\s:=\s|^(?:const|let|var|func|return|import|if|for|git)\b.*[({=]/;

const VALUE = {
  concludes: 1.5,
  announces: -3,
  heading: -1.5,
  specific: 0.5,
  code: -1.5,
  // For each line from it to the end: the end of an answer is its conclusion.
  beforeEnd: -0.02,
};

export interface QuoteLimits {
  readonly tokensMax: number;
  /** Lines that the prompt or the block holds already. */
  readonly said?: Pick<SaidLines, 'has'>;
}

/** At most `tokensMax` tokens of the request and the conclusion; empty when nothing is worth it. */
export function quoteExchange(
  exchange: { readonly asked: string; readonly answered: string },
  values: TermValues,
  { tokensMax, said = new SaidLines('') }: QuoteLimits,
): readonly Quote[] {
  const lines = conclusionLines(exchange.answered).filter((line) => !said.has(line));
  const sentence = requestSentence(exchange.asked, values, said);
  const isWhole = isOneStatement(exchange.asked) || answersItself(sentence, lines, values);
  const request = clip(sentence, isWhole ? tokensMax : REQUEST_TOKENS_MAX);
  const left = tokensMax - estimateTextTokens(request);
  const concluded = linesFor(lines, values, left);
  if (concluded.length === 0 && onlyAsks(sentence)) return [];
  return [
    ...(request === '' ? [] : [{ role: 'user' as const, text: request }]),
    ...concluded.map((text) => ({ role: 'assistant' as const, text })),
  ];
}

/** A question or an order without any line of an answer. */
export function isUnanswered(quotes: readonly Quote[]): boolean {
  return quotes.every(({ role, text }) => role === 'user' && !isStatement(text));
}

/**
 * Whether the person's sentence itself answers the question: it states something that cannot be
 * guessed, and fits the question as well as any line of the answer does. Then it is quoted whole. A
 * question needs its answer more.
 */
function answersItself(sentence: string, lines: readonly string[], values: TermValues): boolean {
  if (!SPECIFIC.test(sentence) || /[?？]\s*$/.test(sentence)) return false;
  const match = matchOf(sentence, values);
  return lines.every((line) => matchOf(line, values) <= match);
}

/** A person who says one sentence, and neither asks nor orders, wants it known: its value may come last. */
export function isOneStatement(text: string): boolean {
  const sentences = sentencesOf(text);
  return sentences.length === 1 && isStatement(text) && hasValue(text);
}

/** Whether the text holds what cannot be guessed: a name of code, a setting, a figure. */
export function hasValue(text: string): boolean {
  return SPECIFIC.test(text) || SETTING.test(text);
}

const SETTING = /\w=\S|\b[A-Z][A-Z\d_]{2,}\b|\d/;

/** The lines of the end of an answer, as they are quoted. */
export function conclusionLines(answer: string): string[] {
  const lines = conclusionOf(answer).split('\n').map(plainLine);
  return [...new Set(lines)].filter((line) => /[\p{L}\p{N}]{2}/u.test(line)).slice(-LINES_MAX);
}

/**
 * An agent says between its calls what it does next ("Good. Now let me look at the caller."). The
 * conclusion is what follows the last such remark, or the one before where little follows.
 */
function conclusionOf(answer: string): string {
  const paragraphs = endOf(answer, CONCLUSION_CHARS).split(/\n\s*\n/);
  const kept: string[] = [];
  let chars = 0;
  for (const paragraph of paragraphs.toReversed()) {
    const isRemark = ON_THE_WAY.test(paragraph);
    if (isRemark && chars >= CONCLUSION_CHARS_MIN) break;
    if (isRemark) continue;
    kept.push(paragraph);
    chars += paragraph.length;
  }
  return kept.toReversed().join('\n\n');
}

/** From the beginning of a line on. */
function endOf(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const end = text.slice(-chars);
  const line = end.indexOf('\n');
  return end.slice(1 + (line === -1 ? end.indexOf(' ') : line));
}

/** A line of an answer without its marks of Markdown. */
export function plainLine(line: string): string {
  return line
    .replace(/^\s*(?:#{1,6}\s+|[-*•]\s+|>\s+|```.*$)/, '')
    .replaceAll('**', '')
    .replace(/^\|\s*/, '')
    .replace(/\s*\|\s*$/, '')
    .trim();
}

/** Runs of lines that follow each other, in their order. */
function linesFor(lines: readonly string[], values: TermValues, tokensMax: number): string[] {
  const ranked = lines
    .map((line, at) => {
      const text = beginningOf(line, tokensMax - MARK_TOKENS);
      const facts = factsOf(text);
      const score = scoreOf(facts, values) + VALUE.beforeEnd * (lines.length - at);
      return { text, at, score, tokens: facts.tokens + MARK_TOKENS };
    })
    .toSorted((a, b) => b.score - a.score);
  const kept: typeof ranked = [];
  let left = tokensMax;
  for (const line of ranked) {
    if (left < ROOM_MIN || line.score < 0) break;
    if (line.tokens > left) continue;
    kept.push(line);
    left -= line.tokens;
  }
  const [best] = ranked;
  if (kept.length === 0 && best !== undefined && tokensMax >= ROOM_MIN) {
    return [clip(best.text, tokensMax)];
  }
  const runs: string[] = [];
  let last = -2;
  for (const { text, at } of kept.toSorted((a, b) => a.at - b.at)) {
    if (at === last + 1) runs.push(`${runs.pop() ?? ''}\n${text}`);
    else runs.push(text);
    last = at;
  }
  return runs;
}

/** As many of the first sentences as fit: a paragraph begins with its point. */
function beginningOf(line: string, tokensMax: number): string {
  const tokens = isKnowable(line) ? factsOf(line).tokens : estimateTextTokens(line);
  if (tokens <= tokensMax) return line;
  const [first = '', ...others] = line.split(SENTENCE_END);
  let text = first;
  for (const other of others) {
    const longer = `${text} ${other}`;
    if (estimateTextTokens(longer) > tokensMax) break;
    text = longer;
  }
  return text.length < BEGINNING_CHARS_MIN ? clip(line, tokensMax) : text;
}

/** A shorter beginning ("Pushed.") is no point. */
const BEGINNING_CHARS_MIN = 40;
const SENTENCE_END = /(?<=[.?!])\s+/;

/** The facts of a line that no question changes. */
interface LineFacts {
  readonly tokens: number;
  /** Distinct, in their order. */
  readonly telling: readonly string[];
  /** Gains and losses by its form. */
  readonly gains: readonly number[];
}

/** A line takes 1 kB. The prompts of a project find the same exchanges again, and to read a line is most of quoting it. */
const KNOWN_LINES = 1_024;
/** A longer line is data, or a paragraph of which a part is quoted. */
const KNOWN_CHARS_MAX = 400;
const knownLines = new Known<LineFacts>(KNOWN_LINES);

function isKnowable({ length }: string): boolean {
  return length <= KNOWN_CHARS_MAX;
}

function factsOf(line: string): LineFacts {
  const known = knownLines.get(line);
  if (known !== undefined) return known;
  const facts = readLine(line);
  if (isKnowable(line)) knownLines.set(line, facts);
  return facts;
}

function readLine(line: string): LineFacts {
  const gains = [
    CONCLUDES.test(line) ? VALUE.concludes : 0,
    ANNOUNCES.test(line) ? VALUE.announces : 0,
    isHeading(line) ? VALUE.heading : 0,
    SPECIFIC.test(line) ? VALUE.specific : 0,
    CODE.test(line) ? VALUE.code : 0,
  ];
  return { tokens: estimateTextTokens(line), telling: tellingIn(line), gains };
}

function tellingIn(text: string): readonly string[] {
  return [...new Set(termsOf(text))].filter(isTelling);
}

function scoreOf({ telling, gains }: LineFacts, values: TermValues): number {
  return gains.reduce((score, gain) => score + gain, sumOf(telling, values));
}

function isHeading(line: string): boolean {
  const words = line.split(' ').length;
  return line.endsWith(':') || words <= 2 || (words <= 4 && !/[.!?`]/.test(line));
}

function matchOf(text: string, values: TermValues): number {
  return sumOf(isKnowable(text) ? factsOf(text).telling : tellingIn(text), values);
}

function sumOf(terms: readonly string[], values: TermValues): number {
  let sum = 0;
  for (const term of terms) sum += values.get(term) ?? 0;
  return sum;
}

/** The sentence of the request that says most about the question; '' when it only steers, or is said. */
function requestSentence(asked: string, values: TermValues, said: Pick<SaidLines, 'has'>): string {
  const own = ownWordsOf(asked);
  if (isReply(own)) return '';
  let best = '';
  let bestScore = -Infinity;
  for (const [at, sentence] of sentencesOf(own).entries()) {
    if (isReply(sentence) || sentence.endsWith(':') || said.has(sentence)) continue;
    const score = matchOf(sentence, values) - 0.1 * at;
    if (score <= bestScore) continue;
    best = sentence;
    bestScore = score;
  }
  return withoutPoliteness(best);
}

export function withoutPoliteness(sentence: string): string {
  return sentence.replace(POLITE, '');
}

const POLITE =
  /^(?:(?:ok(?:ay)?|hmm+|so|and|but|then|now|also|yeah|yes|well|please|(?:can|could) (?:you|we)|let['’]s|i (?:think|want to|wonder)|we need to|right now)[\s,.!:-]+)+/i;

export function sentencesOf(text: string): string[] {
  return text
    .split(/\n+|(?<=[.?!])\s+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}

/** The text, or its first words and an ellipsis. */
export function clip(text: string, tokensMax: number): string {
  // No token has more characters, blanks apart; a line of a megabyte is not counted.
  const start = text.slice(0, tokensMax * TOKEN_CHARS_MAX);
  if (start === text && estimateTextTokens(text) <= tokensMax) return text;
  const words = start.split(' ');
  while (words.length > 1 && estimateTextTokens(`${words.join(' ')}…`) > tokensMax) words.pop();
  const [word = ''] = words;
  // A word of hundreds of letters is data.
  return words.length === 1 ? `${word.slice(0, 2 * tokensMax)}…` : `${words.join(' ')}…`;
}
