import { SAYS_WHY } from '../memory/next-steps.ts';
import { Known } from './known.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import { isReply, isReplyPrompt, isTelling, ownWordsOf, sentencesAsked } from './own-words.ts';
import { SaidLines } from './said-lines.ts';
import {
  HALF,
  hasSubjectAbove,
  isMasked,
  isOfMoment,
  isWeak,
  objectPointsBack,
  pointsBack,
  requestPointsBack,
  sayingPart,
  withoutTicks,
} from './saying.ts';
import {
  hasValue,
  isFragment,
  isNoRequest,
  isStatement,
  kindOf,
  sentencesOf,
  SPECIFIC,
} from './sentences.ts';
import { termsOf } from './terms.ts';

/**
 * Chooses the sentences of an exchange that are worth quoting to an agent: one of the request, and sentences from
 * the answer's end that fit the question. In 23 of 25 studied cases the answer's end had the needed fact, mostly in one
 * line; the passage that fitted the question best had it half as often. A sentence is quoted whole or not at all,
 * because its important part often comes last.
 */

export interface Quote {
  readonly role: 'user' | 'assistant';
  /**
   * Whole sentences of a line, without Markdown emphasis and list marks. The heading of its list stands in front of a
   * list item that is unclear without it.
   */
  readonly text: string;
}

/** For each term, the value that it adds to a line's score. */
export type TermValues = ReadonlyMap<string, number>;

/** Characters at an answer's end in which svc looks for its conclusion. The text before mostly reports progress. */
const CONCLUSION_CHARS = 4000;
/** If less follows an announcement of the next step, the conclusion begins before the announcement. */
const CONCLUSION_CHARS_MIN = 200;
const LINES_MAX = 80;
/**
 * Most characters of a token in a usual text. A line with more characters for each allowed token is too long, so its
 * tokens need not be counted.
 */
const TOKEN_CHARS_MAX = 12;
/**
 * Token limit of a quoted request. It mostly says what the answer is about, so it must leave room for the answer. A
 * request that answers the question itself may be longer.
 */
const REQUEST_TOKENS_MAX = 24;
/** Tokens of the label and the line end of a quote. */
const MARK_TOKENS = 4;

/** Matches announcements of the agent's next step, as it writes them between its calls. */
const ON_THE_WAY =
  /\b(?:let me (?!know)|i['’]ll (?:now|first|start|also|check|look|add|update|run|fix)|now i (?:need|will)|i need to (?:check|look|see|find|update|fix))/i;
/** Matches words of a decision or a rule. */
const DECIDES = /decid|never\b|must\b|fix(?:ed)?:|design|note:|reason/i;

/** Summands of a line's score. */
const VALUE = {
  concludes: 1.5,
  asks: -3,
  specific: 0.5,
  // For each line from this one to the end: an answer ends with its conclusion.
  beforeEnd: -0.02,
};

export interface QuoteLimits {
  readonly tokensMax: number;
  /** The terms of the prompt itself, without those of the text around it. */
  readonly own?: ReadonlySet<string>;
  /** Lines that the prompt or the block already has. */
  readonly said?: Pick<SaidLines, 'has'>;
}

export interface Answer {
  readonly answered: string;
  /** Index in `answered` at which the text after the last tool call begins; undefined: all text counts as answer. */
  readonly lastFrom?: number | undefined;
}

/** Chooses quotes of at most `tokensMax` tokens from request and conclusion; empty if nothing is worth quoting. */
export function quoteExchange(
  exchange: Answer & { readonly asked: string },
  values: TermValues,
  { tokensMax, own = new Set(), said = new SaidLines('') }: QuoteLimits,
): readonly Quote[] {
  const told = firstTold(exchange, (part, isTold) =>
    linesIn(part).filter(
      ({ text, item }) =>
        isTold(item) && scoreOf(factsOf(text), values) > 0 && !said.has(text) && !said.has(item),
    ),
  );
  const lines = linesAbout(told, own, values);
  const texts = lines.map(({ text }) => text);
  const request = requestSentence(exchange.asked, { values, said, tokensMax, lines: texts });
  const left = request === undefined ? tokensMax : tokensMax - MARK_TOKENS - tokensOf(request.text);
  const concluded = linesFor(lines, values, left);
  return [
    ...(request === undefined ? [] : [{ role: 'user' as const, text: request.text }]),
    ...concluded.map((text) => ({ role: 'assistant' as const, text })),
  ];
}

/**
 * Returns the lines that share words with the prompt, or state a cause or a decision: an answer may be about several
 * things. Lines that share only common words count if no line shares a rarer one. Returns all lines if none shares a
 * word. `own`: the terms of the prompt.
 */
function linesAbout(
  lines: readonly Line[],
  own: ReadonlySet<string>,
  values: TermValues,
): readonly Line[] {
  const shared = lines.map(({ text }) =>
    sumOf(
      factsOf(text).telling.filter((term) => own.has(term)),
      values,
    ),
  );
  const most = Math.max(0, ...shared);
  if (most === 0) return lines;
  const least = most < SHARED_MIN ? Number.EPSILON : SHARED_MIN;
  return lines.filter(({ item }, at) => (shared[at] ?? 0) >= least || concludes(item));
}

/**
 * Least value of the words that a line shares with the prompt: the value of a single word that every seventh passage
 * has. Words that most passages have, such as "session", do not show that a line is about the prompt.
 */
const SHARED_MIN = 2;

/** Says whether the quotes have no line of an answer, and no request that is useful without its answer. */
export function isUnanswered(quotes: readonly Quote[]): boolean {
  return quotes.every(({ role, text }) => role === 'user' && !holdsAlone(text));
}

/** Says whether a request is useful without its answer: it states a value, a cause or a decision. */
function holdsAlone(request: string): boolean {
  return kindOf(request) === 'statement' && (hasValue(request) || concludes(request));
}

/**
 * Says whether a request is a single statement with a value: the user wants it to be remembered, such as "The staging
 * port is 4011." Pass the sentences of the request.
 */
export function isOneStatement([first = '', ...more]: readonly string[]): boolean {
  return more.length === 0 && kindOf(first) === 'statement' && hasValue(first);
}

/** Matches a code block of Markdown. */
const FENCED = /^[ \t]*```[^\n]*\n([\s\S]*?)^[ \t]*```[^\n]*$/gm;
/** Matches a line that is a program's message ("Gateway: no such port") and no command ("Select-String quay"). */
const MESSAGE = /^\s*\p{Lu}\p{Ll}+(?![\p{L}-])/u;
const HEADING_OR_ROW = /^\s*(?:#{1,6}\s|\||\*\*[^*]+\*\*:?\s*$|[-=*_]{3,}\s*$)/;

interface Line {
  /** The line as it is quoted: a list item that is unclear by itself stands behind the heading of its list. */
  readonly text: string;
  /** The line without the heading. */
  readonly item: string;
}

/** Returns the lines at the end of an answer that make sense by themselves, as they are quoted. */
export function conclusionLines(answer: string): string[] {
  return linesIn(answer).map(({ text }) => text);
}

/** Returns the first, main sentence of each line of conclusionLines(). Leaves out lines with a heading in front. */
export function soleSentences(answer: string): string[] {
  return linesIn(answer).flatMap(({ text, item }) =>
    text === item ? sentencesOf(text).slice(0, 1) : [],
  );
}

/**
 * Returns the result of `tell` for the text after the answer's last tool call or, if that result is empty, for the text
 * before that call. `tell` also gets `isTold`, which for this earlier text accepts only causes and decisions, because
 * most other lines announce a step, or state what a later call disproved.
 */
export function firstTold<Told>(
  { answered, lastFrom = 0 }: Answer,
  tell: (part: string, isTold: (line: string) => boolean) => readonly Told[],
): readonly Told[] {
  const told = tell(answered.slice(lastFrom), () => true);
  return told.length > 0 || lastFrom === 0 ? told : tell(answered.slice(0, lastFrom), concludes);
}

/** Returns the last LINES_MAX lines of an answer's conclusion that make sense, each once. */
function linesIn(answer: string): Line[] {
  // Keep a command of one line, because it is a value. Leave out longer code, which the agent finds in its file, and
  // messages of programs.
  const spoken = answer.replaceAll(FENCED, (_, code: string) =>
    code.trim().includes('\n') || MESSAGE.test(code) ? '' : code,
  );
  const found = new Map<string, Line>();
  let head = '';
  let headIndent = -1;
  let areOptions = false;
  for (const raw of conclusionOf(spoken).split('\n')) {
    const plain = plainLine(raw);
    if (plain === '') continue;
    const isItem = ITEM.test(raw);
    const indent = raw.search(/\S/);
    if (HEADING_OR_ROW.test(raw) || /[:：]$/.test(plain)) {
      head = sayingPart(plain);
      areOptions = OPTIONS.test(plain);
      headIndent = isItem ? indent : -1;
      continue;
    }
    // A heading applies only to the items of its list.
    if (!isItem || indent <= headIndent) head = '';
    if (isItem && areOptions) continue;
    areOptions = false;
    const text = sayingPart(plain);
    const isHalf = HALF.test(text) || HALF.test(head);
    if (text === '' || isHalf) continue;
    if (isFragment(text) || isWeak(text)) continue;
    const isBelow = hasSubjectAbove(text);
    const whole = isTellingHead(head) ? `${head} ${text}` : undefined;
    if (!isBelow && (!isItem || !needsHead(text))) found.set(text, { text, item: text });
    else if (whole !== undefined) found.set(whole, { text: whole, item: text });
    else if (isBelow) continue;
    else if (
      HAS_LABEL.test(text) ||
      (!LACKS_SUBJECT.test(text) && (hasValue(text) || concludes(text)))
    )
      found.set(text, { text, item: text });
  }
  return [...found.values()].slice(-LINES_MAX);
}

/** Matches the line above a list of options. The options are not quoted, because none says which one was chosen. */
const OPTIONS =
  /\b(?:alternatives|approaches|choices|options|possibilities|scenarios?)\b|\b(?:could|might|would you|you can|should (?:i|we))\b.*[:：]$/i;
/** Matches the mark of a list item: a dash, a number, or a sign that ticks the item off. */
const ITEM = /^\s*(?:(?:[-*•]|\d{1,3}[.)])\s|(?![\d#*©®])\p{Extended_Pictographic})/u;

/**
 * Says whether a list item is unclear without the list's heading. A list item with a label is clear if the label has a
 * value, such as a name of code. Any other list item is clear if it is a whole statement.
 */
function needsHead(item: string): boolean {
  const [label] = HAS_LABEL.exec(item) ?? [];
  return label === undefined ? !IS_WHOLE.test(item) : !hasValue(label);
}

/** Matches a list item that is a whole statement: it ends like a sentence, or begins with a past verb. */
const IS_WHOLE = /[.!。！]["'”’)\]`]*$|^\p{Lu}\p{Ll}+ed\s/u;
/** Matches a list item that begins with its own subject: "`quay.ts`: opens the gate". */
const HAS_LABEL = /^(?:`[^`]+`|[^\s:]+(?: [^\s:]+){0,2}):\s/;
/** Matches list items that begin with a verb, so that they have no subject: "Verifies the message". */
const LACKS_SUBJECT =
  /^[A-Z]?[a-z]+(?<!s|thi|it|alway)s (?!(?:already|also|are|can|could|do|has|have|is|must|never|now|was|were)(?:n['’]t)?\b)/;

/** Says whether the heading of a list ends with a colon, is short, and is informative; "Changes:" is not. */
function isTellingHead(head: string): boolean {
  return (
    /[:：]$/.test(head) &&
    !isWeak(head) &&
    tellingIn(head).length >= HEAD_TELLING_MIN &&
    tokensOf(head) <= HEAD_TOKENS
  );
}

const HEAD_TELLING_MIN = 2;
const HEAD_TOKENS = 20;

/**
 * Returns the conclusion of an answer. Between its calls an agent announces its next step ("Good. Now let me look at
 * the caller."). The conclusion is the text after the last announcement that CONCLUSION_CHARS_MIN characters follow,
 * without the paragraphs of later announcements.
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

/** Returns at most `chars` characters from the end of a text, from the beginning of a line or else of a word on. */
function endOf(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const end = text.slice(-chars);
  const line = end.indexOf('\n');
  return end.slice(1 + (line === -1 ? end.indexOf(' ') : line));
}

/** Returns a line of an answer without Markdown, HTML tags and signs that tick off a list item. */
export function plainLine(line: string): string {
  return withoutTicks(withoutMarks(line));
}

const TAG = /<\/?(?:b|br|code|details|em|i|kbd|small|strong|sub|summary|sup|u) ?\/?>/gi;

function withoutMarks(line: string): string {
  return line
    .replaceAll('**', '')
    .replaceAll(TAG, '')
    .replace(/^\s*(?:(?:#{1,6}|[-*•>]|\d{1,3}[.)])\s+)+(?:\[[ xX]\]\s+)?/, '')
    .replace(/^\s*```.*$/, '')
    .replace(/^\|\s*/, '')
    .replace(/\s*\|\s*$/, '')
    .trim();
}

/** Returns the lines with the highest positive scores that fit into `tokensMax`, in text order. */
function linesFor(lines: readonly Line[], values: TermValues, tokensMax: number): string[] {
  const ranked = lines
    .flatMap(({ text: line }, at) => {
      const text = beginningOf(line, tokensMax - MARK_TOKENS);
      if (text === '') return [];
      const facts = factsOf(text);
      const score = scoreOf(facts, values) + VALUE.beforeEnd * (lines.length - at);
      return [{ text, at, score, tokens: facts.tokens + MARK_TOKENS }];
    })
    .toSorted((a, b) => b.score - a.score);
  const kept: typeof ranked = [];
  let left = tokensMax;
  for (const line of ranked) {
    if (line.score <= 0) break;
    if (line.tokens > left) continue;
    kept.push(line);
    left -= line.tokens;
  }
  return kept.toSorted((a, b) => a.at - b.at).map(({ text }) => text);
}

/** Returns as many sentences from the beginning of a line as fit; '' if none fits or those that fit say too little. */
function beginningOf(line: string, tokensMax: number): string {
  if (line.length <= tokensMax * TOKEN_CHARS_MAX && tokensOf(line) <= tokensMax) return line;
  const start = line.slice(0, tokensMax * TOKEN_CHARS_MAX);
  const sentences = sentencesOf(start);
  // The slice may have cut the last sentence, so drop it.
  if (start.length < line.length) sentences.pop();
  let text = '';
  let end = 0;
  for (const sentence of sentences) {
    const from = start.indexOf(sentence, end);
    const longer = start.slice(0, from + sentence.length);
    if (estimateTextTokens(longer) > tokensMax) break;
    text = longer;
    end = from + sentence.length;
  }
  // The cut may have made an offer ("Shall I …?") the last sentence; remove it.
  const saying = sayingPart(text);
  return saying.length < BEGINNING_CHARS_MIN || isFragment(saying) ? '' : saying;
}

/**
 * Least length of the beginning of a line that is too long to be quoted whole. A shorter beginning, such as "Pushed.",
 * says too little.
 */
const BEGINNING_CHARS_MIN = 40;

/** The facts about a line that are the same for every question. */
interface LineFacts {
  readonly tokens: number;
  /** The distinct informative terms, in their order. */
  readonly telling: readonly string[];
  /** Summands of the score that depend only on the line; see VALUE. */
  readonly gains: readonly number[];
}

/**
 * Half the bound on cached lines (see Known), each of 1 kB. The prompts of a project find the same exchanges again, and
 * most of the time for quoting a line is its analysis.
 */
const KNOWN_LINES = 1_024;
/** Longest cached line: a longer one is data, or a paragraph of which only a part is quoted. */
const KNOWN_CHARS_MAX = 400;
const knownLines = new Known<LineFacts>(KNOWN_LINES);

function isKnowable({ length }: string): boolean {
  return length <= KNOWN_CHARS_MAX;
}

function tokensOf(line: string): number {
  return isKnowable(line) ? factsOf(line).tokens : estimateTextTokens(line);
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
    concludes(line) ? VALUE.concludes : 0,
    kindOf(line) === 'question' ? VALUE.asks : 0,
    SPECIFIC.test(line) ? VALUE.specific : 0,
  ];
  return { tokens: estimateTextTokens(line), telling: tellingIn(line), gains };
}

/** Says whether a line states a cause or a decision. */
export function concludes(line: string): boolean {
  return SAYS_WHY.test(line) || DECIDES.test(line);
}

function tellingIn(text: string): readonly string[] {
  return [...new Set(termsOf(text))].filter(isTelling);
}

function scoreOf({ telling, gains }: LineFacts, values: TermValues): number {
  return gains.reduce((score, gain) => score + gain, sumOf(telling, values));
}

/** Returns the value of the terms that a text shares with the question. */
function matchOf(text: string, values: TermValues): number {
  return sumOf(isKnowable(text) ? factsOf(text).telling : tellingIn(text), values);
}

function sumOf(terms: readonly string[], values: TermValues): number {
  let sum = 0;
  for (const term of terms) sum += values.get(term) ?? 0;
  return sum;
}

/**
 * Returns the statement of the request that fits the question best; undefined if none fits, or if each is already
 * quoted or too long. An order is not quoted, because it was carried out, nor a question, because its answer is quoted.
 */
function requestSentence(
  asked: string,
  given: {
    readonly values: TermValues;
    readonly said: Pick<SaidLines, 'has'>;
    readonly tokensMax: number;
    readonly lines: readonly string[];
  },
): { readonly text: string } | undefined {
  const { values, said, tokensMax, lines } = given;
  if (isReply(ownWordsOf(asked))) return undefined;
  const sentences = sentencesAsked(asked);
  const isOnly = isOneStatement(sentences);
  let best: { readonly text: string; readonly score: number } | undefined;
  for (const [at, whole] of sentences.entries()) {
    const text = withoutPoliteness(plainLine(whole));
    if (isReplyPrompt(text) || isNoRequest(text) || isMasked(text) || isOfMoment(whole)) continue;
    if (!isStatement(text) || (isBack(text) && !hasValue(text))) continue;
    const match = matchOf(text, values);
    // A sentence that shares no term with the question is about something else, unless it is the whole request.
    if (match === 0 && !isOnly) continue;
    const most =
      isOnly || answersItself(text, lines, values)
        ? tokensMax - MARK_TOKENS
        : Math.min(REQUEST_TOKENS_MAX, tokensMax - MARK_TOKENS);
    if (text.length > most * TOKEN_CHARS_MAX || tokensOf(text) > most) continue;
    const score = match - 0.1 * at - (pointsBack(text) ? BACK_PENALTY : 0);
    // Check last whether the model already has the sentence, because that costs most.
    if ((best === undefined || score > best.score) && !said.has(text)) best = { text, score };
  }
  return best;
}

function isBack(request: string): boolean {
  return requestPointsBack(request) || objectPointsBack(request);
}

/** Penalty of a sentence whose subject was named before it: more than any match with the prompt adds. */
const BACK_PENALTY = 1000;

/**
 * Says whether the user's sentence answers the question itself: it states a value, and fits the question as well as
 * any line of the answer does.
 */
function answersItself(sentence: string, lines: readonly string[], values: TermValues): boolean {
  if (!SPECIFIC.test(sentence)) return false;
  const match = matchOf(sentence, values);
  return lines.every((line) => matchOf(line, values) <= match);
}

/**
 * Removes the polite opening of a sentence. If an order remains, its question mark goes too: "can you rename the
 * quay?" is no question.
 */
export function withoutPoliteness(sentence: string): string {
  const plain = sentence.replace(POLITE, '');
  const order = plain.replace(/\s*[?？]$/, '');
  return plain !== sentence && kindOf(order) === 'order' ? order : plain;
}

const POLITE =
  /^(?:(?:ok(?:ay)?|ah|all good|alright|anyway|good|great|h+m+|oh|perfect|sorry|thanks|wait|no wait|so|and|but|then|now|also|however|actually|basically|question|one question|just|ye(?:ah|p|s)|well|please|(?:can|could|would) you|can we|let['’]s|i (?:think|want to|wonder)|we need to|right now|und|aber|bitte|(?:kannst|könntest) du|et|mais|peux-tu|pouvez-vous|y|pero|por favor|puedes|podrías)[\s,.!:-]+|请(?:帮我)?|帮我|那么[，,]?)+/iu;
