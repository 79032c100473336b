import type { RecordText } from './record.ts';
import { textDigest } from './reference.ts';
import { type Heard, withoutEchoes } from './echoes.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import { isFiller, isOrder } from './orders.ts';
import { withoutReminders } from '../conversation/human-text.ts';
import { NO_BLOCKS, type OwnBlocks, withoutOwnBlocks } from '../recall/own-blocks.ts';
import { maskSecrets, stripPrivate } from '../redaction/redaction.ts';
import { hasTerms } from '../recall/terms.ts';
import { announcesStep, offersWork, SAYS_WHY } from './next-steps.ts';

/**
 * Decides which parts of a conversation become memories: the person's typed text and the
 * assistant's visible answer, once. Never reasoning, tool arguments, client wrappers, recalled
 * blocks, fillers, orders of a few words or a half answer. Secrets are masked before any other code
 * sees the text.
 */

// The longest typed prompts and answers measured are under 30 kB; what is longer is pasted data, of
// which the start is kept.
const TEXT_CHARS_MAX = 32_768;

/**
 * The person's text of the exchange, when it is worth keeping. Undefined for fillers: "ok" or
 * "continue" recalls nothing and matches everything.
 */
export function captureHuman(
  humanText: string,
  own: OwnBlocks = NO_BLOCKS,
): RecordText | undefined {
  const text = cleanText(humanText, own);
  return text === '' || isOrder(text) ? undefined : captured('user', text);
}

/**
 * The assistant's visible text of a whole exchange; undefined when there is nothing to keep.
 * `heard`: the memories in the request, because an answer that only repeats them is no memory.
 */
export function captureAssistant(
  assistantText: string,
  heard: Heard = NOTHING_HEARD,
): RecordText | undefined {
  const text = withoutEchoes(cleanAnswer(assistantText, heard), heard);
  return saysLittle(text) ? undefined : captured('assistant', text);
}

/**
 * A text that was a memory before, as an export has it, or that a person wrote as one. It is masked once
 * more, because a line may come from anywhere, but neither cut nor judged: svc's own blocks went when it was
 * captured, and whoever else writes the fence wrote a text. Undefined when nothing is left of it.
 */
export function captureStored(role: 'user' | 'assistant', text: string): RecordText | undefined {
  const kept = maskSecrets(stripPrivate(text)).text;
  return kept.trim() === '' ? undefined : captured(role, kept);
}

/** The question for a recall: masked like everything that leaves for a memory. */
export function questionText(text: string, charsMax: number): string {
  const visible = visibleText(text);
  if (visible.length <= charsMax) return maskSecrets(visible).text.slice(0, charsMax);
  // People put the point first or last; what lies between is usually pasted.
  const half = charsMax >> 1;
  return `${startOf(visible, half)}\n${endOf(visible, half)}`;
}

/** The texts of an exchange as memories have them, but for echoes. Masking them is most of the work. */
export interface CleanExchange {
  readonly humanText: string;
  readonly humanDigest: string;
  readonly said: string;
  readonly saidDigest: string;
}

export function cleanExchange({
  humanText,
  assistantText,
}: Pick<Exchange, 'humanText' | 'assistantText'>): CleanExchange {
  const said = cleanAnswer(assistantText);
  const humanDigest = textDigest('user', cleanText(humanText));
  return { humanText, humanDigest, said, saidDigest: textDigest('assistant', said) };
}

/** The digests that an exchange has as memories: what a request already holds is not recalled. */
export function heldDigests(
  { humanText, humanDigest, said, saidDigest }: CleanExchange,
  blocks: readonly string[],
): readonly string[] {
  const own = withoutEchoes(said, { blocks, key: '', question: humanText });
  return [humanDigest, saidDigest, ...(own === said ? [] : [textDigest('assistant', own)])];
}

const NOTHING_HEARD: Heard = { ...NO_BLOCKS, question: '' };

function captured(role: 'user' | 'assistant', text: string): RecordText {
  return { digest: textDigest(role, text), role, text };
}

function cleanText(text: string, own: OwnBlocks = NO_BLOCKS): string {
  return startOf(visibleText(withoutOwnBlocks(text, own)), TEXT_CHARS_MAX).trim();
}

function visibleText(text: string): string {
  return stripPrivate(text).trim();
}

// Half a secret has no format that a rule could recognise. So svc masks more characters than it
// keeps, and leaves that many out again where the text was cut. The longest secret, a private key
// of 4,096 bits, has some 3,300 characters.
const CUT_CHARS = 8_192;

/** Masked; up to `charsMax` characters. */
function startOf(text: string, charsMax: number): string {
  const { text: masked } = maskSecrets(text.slice(0, charsMax + CUT_CHARS));
  const isCut = text.length > charsMax + CUT_CHARS;
  return masked.slice(0, Math.min(charsMax, Math.max(0, masked.length - (isCut ? CUT_CHARS : 0))));
}

/** The same from the end. */
function endOf(text: string, charsMax: number): string {
  const { text: masked } = maskSecrets(text.slice(-(charsMax + CUT_CHARS)));
  const isCut = text.length > charsMax + CUT_CHARS;
  const start = Math.max(isCut ? CUT_CHARS : 0, masked.length - charsMax);
  return masked.slice(start);
}

/** Models repeat text from tool results, and clients put their reminders there. */
function cleanAnswer(text: string, own: OwnBlocks = NO_BLOCKS): string {
  return withoutAnnouncements(cleanText(withoutReminders(withoutWrittenThoughts(text)), own));
}

/** "Done. All tests pass." is an answer, but not a memory: one telling word is not enough. */
function saysLittle(text: string): boolean {
  return text === '' || isFiller(text) || !hasTerms(lastingPart(text).slice(0, 400), 2);
}

/** Elements, in any case: DeepSeek, Qwen and GLM; Gemini; Seed; prompts of people. */
const NAMES = '(?:\\w+:)?think(?:ing)?|thoughts?|reasoning';
/** Pairs of marks: Mistral, Cohere, Gemma 4, Kimi, Apertus. */
const PAIRS = [
  ['[THINK]', '[/THINK]'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|channel>thought', '<channel|>'],
  ['◁think▷', '◁/think▷'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
] as const;

const MAYBE = /think|thought|reasoning|channel|analysis|inner_/i;

// Each begins a line. One that never closes was cut off.
const ELEMENT = new RegExp(`(?:^|\\n)[ \\t]*<(${NAMES})(?:\\s[^>\\n]*)?>[^]*?(?:</\\1>|$)`, 'gi');
const PAIRED = PAIRS.map(
  ([open, close]) =>
    new RegExp(`(?:^|\\n)[ \\t]*${literal(open)}[^]*?(?:${literal(close)}|$)`, 'g'),
);
// A mark in quotes or code is no mark: the text is about it.
const MARK = new RegExp(
  `(?<![\`'"])(?:<(/?)(${NAMES})>|${PAIRS.flat().map(literal).join('|')})(?![\`'"])`,
  'gi',
);

/**
 * Leaves out the reasoning that a model wrote into its visible text. A server of open models does so if it cannot tell a
 * model's reasoning from its answer; Gemini does so if the client asks for thoughts.
 *
 * The forms are those of vLLM's reasoning parsers, of Gemini's OpenAI layer and of OpenAI's harmony format, as
 * documented in November 2026.
 */
function withoutWrittenThoughts(text: string): string {
  if (!MAYBE.test(text)) return text;
  let rest = finalChannel(text).replaceAll(ELEMENT, '\n');
  for (const pair of PAIRED) rest = rest.replaceAll(pair, '\n');
  return rest.slice(afterLastClose(rest)).trim();
}

/** Where the prompt's template opened the thought, the answer only closes it. */
function afterLastClose(text: string): number {
  const opened = new Set<string>();
  let end = 0;
  for (const match of text.matchAll(MARK)) {
    const [mark, slash, name] = match;
    const pair = PAIRS.find((one) => one.some((side) => side === mark));
    const key = (name ?? pair?.[0] ?? '').toLowerCase();
    const isClose = name === undefined ? pair?.[1] === mark : slash === '/';
    if (!isClose) opened.add(key);
    else if (!opened.has(key)) end = match.index + mark.length;
  }
  return end;
}

const MESSAGE_ENDS = /<\|start\|>(?:assistant)?|<\|(?:end|return|call)\|>/;
const MESSAGE = /^\s*<\|channel\|>(\w*)([^]*?)<\|message\|>([^]*)$/;
/** A server that leaves the marks out writes the names of the channels into the text. */
const UNMARKED = /^\s*analysis[^]*assistantfinal/;

/** Keeps harmony's `final` channel, and `commentary` that is for the person and not for a tool. */
function finalChannel(text: string): string {
  if (!text.includes('<|channel|>')) return text.replace(UNMARKED, '');
  const said: string[] = [];
  for (const part of text.split(MESSAGE_ENDS)) {
    const [isMessage, channel, recipient = '', content = ''] = MESSAGE.exec(part) ?? [];
    const isSaid = channel === 'final' || (channel === 'commentary' && !recipient.includes('to='));
    // A message that was cut off before its content says nothing.
    if (isMessage === undefined && !/^\s*<\|channel\|>/.test(part)) said.push(part);
    else if (isSaid) said.push(content);
  }
  return said.join('\n');
}

function literal(mark: string): string {
  return mark.replaceAll(/[[\]|/]/g, String.raw`\$&`);
}

const ANNOUNCEMENT_CHARS_MAX = 200;

/** Texts that clients write in the assistant's name where it said nothing. */
const NO_ANSWERS: ReadonlySet<string> = new Set(['No response requested.', '(no content)']);

/**
 * Leaves out the sentences of an answer that have no value once read: the assistant's next step, a step that went
 * well, offers for later. An answer of nothing but such sentences is no memory. Code, lists and headings stay.
 */
function withoutAnnouncements(text: string): string {
  const kept = proseKept(text, (sentence) => !isAnnouncement(sentence)).trim();
  const paragraphs = kept.split(/\n{2,}/);
  if (paragraphs.length === 1 || !kept.includes('\n\n')) return kept;
  return paragraphs
    .filter((paragraph) => !isShortRemark(paragraph))
    .join('\n\n')
    .trim();
}

const REMARK_TERMS_MIN = 3;

/** "That worked." between two steps. A heading, an item or a line of code may be short and mean much. */
function isShortRemark(paragraph: string): boolean {
  if (paragraph.length > ANNOUNCEMENT_CHARS_MAX || paragraph.includes('\n')) return false;
  return /^[\p{L}\p{N}].*[.:!…]$/u.test(paragraph) && !hasTerms(paragraph, REMARK_TERMS_MIN);
}

function isAnnouncement(sentence: string): boolean {
  if (NO_ANSWERS.has(sentence)) return true;
  if (sentence.length > ANNOUNCEMENT_CHARS_MAX || !/[.:!…]$/.test(sentence)) return false;
  return announcesStep(sentence.toLowerCase()) && !SAYS_WHY.test(sentence);
}

interface Status {
  /** Each sentence of this form holds one of them. */
  readonly words: readonly string[];
  readonly form: RegExp;
}

function status(words: string, form: RegExp): Status {
  return { words: words.split('|'), form };
}

/**
 * V8 compiles a form at its first sentence that holds one of its words: most take less than half a millisecond, and all
 * of them as one pattern took 10 ms of the first answer after a start. They are read in lower case, which halves that. No
 * class of Unicode is counted here: such a pattern takes 400 ms at its first text that is not ASCII.
 */
const STATUS: readonly Status[] = [
  status(
    'worked|works|did it|went ',
    /^(?:(?:ok|okay|good|great|perfect|excellent|nice|done)\b[^a-z0-9`]{1,4})?(?:that|it|this) (?:worked|works|did it|went (?:fine|well|through))[.!]?$/u,
  ),
  status(
    'committed|pushed|merged|rebased|staged|opened|created',
    /^(?:(?:done|ok|okay|great)\b[^a-z0-9`]{1,4})?(?:i(?:(?:'|’)ve| have)? (?:now |just |also )?)?(?:committed|pushed|merged|rebased|staged|opened|created)\b(?: (?:and|as|to|the|a|an|new|it|them|all|your|my|this|that|those|committed|pushed|merged|changes?|commits?|branch|origin|main|master|upstream|remote|prs?|pull requests?|mrs?|merge requests?|into|onto|on|for|review|`[^`]{1,60}`|#\d+|[0-9a-f]{7,40}))*[.!]?$/u,
  ),
  status(
    'created|opened|merged|deleted|pushed|updated|went through|is up|succeeded|passed',
    /^(?:the )?(?:prs?|pull request|mr|merge request|branch|commit|push|release|tag|deploy(?:ment)?|build)\b[^.!?]{0,24}\b(?:created|opened|merged|deleted|pushed|updated|went through|is up|succeeded|passed)\b[.:!]?(?: https?:\/\/\S+)?$/u,
  ),
  status(
    'needed|required|necessary|to do|to commit|to push|to change|to fix',
    /^(?:no|nothing)\b[^.!?]{0,30}\b(?:needed|required|necessary|to (?:do|commit|push|change|fix))[.!]?$/u,
  ),
  status(
    'proceeding|one moment|on it|will do|continuing|starting',
    /^(?:sure|understood|got it|ok|okay|alright)\b[^a-z0-9]{1,3}(?:proceeding|one moment|on it|working on it|will do|continuing|starting)\b[^.!?]{0,30}[.!…]*$/u,
  ),
  status(
    'grün|fertig|erledigt|gepusht|durch|erfolgreich|bestanden',
    /^(?:(?:fertig|erledigt|gut|super)\b[^a-z]{1,3})?(?:alles (?:grün|fertig|erledigt|gepusht)|(?:alle|die) [^.!?]{0,24}(?:tests?|checks?|build)\b[^.!?]{0,40}\b(?:durch|grün|fertig|erfolgreich|bestanden))[.!]?$/u,
  ),
  status(
    'pass|succe|clean|green|compil|fine|good|work|date|running|complete|pushed|committed|done',
    /^(?:(?:ok|okay|good|great|perfect|excellent|nice|clean|yes|done)\b[^a-z0-9`]{0,4})?(?:all|both|the|every|everything|no|working)?[ \w/-]{0,24}?\b(?:tests?|builds?|lint(?:ing)?|ci|types?|typecheck|type checks?|compil\w+|checks?|hooks?|formatting|suite|everything|working tree|branch|server|servers|commits?|changes|tree)\b[^.!?]{0,60}\b(?:pass\w*|succeed\w*|successful(?:ly)?|clean(?:ly)?|green|compil\w+|fine|good|works?|up[ -]to[ -]date|running|complete[d]?|pushed|committed|done)\b/u,
  ),
  status(
    'on |switched to ',
    /^(?:(?:(?:good|great|ok|okay),? )?(?:on|now on|back on|already on|staying on|switched to|we(?:'|’)re on) `?[\w./-]{1,80}`?)(?:[,. ]|$)[^?]{0,90}$/u,
  ),
  status(
    'good |great |excellent |nice |perfect |solid |amazing ',
    /^(?:good|great|excellent|nice|perfect|solid|amazing) [a-z ]{3,40}[.!]$/u,
  ),
  status(
    'ahead|committed|pushed|shipped|merged',
    /^(?:\d+ commits? ahead|committed|pushed|shipped|merged)\b[^.!?]{0,20}(?:`[0-9a-f]{7,40}`)?[^.!?]{0,80}[.!]?$/u,
  ),
  status('` is |` was ', /^`[0-9a-f]{7,40}` (?:is|was) (?:on|pushed)\b/u),
  // The empty word is in every sentence.
  status(
    '',
    /^(?:all )?(?:done|committed|pushed|merged|shipped|fixed|saved|updated|confirmed|got it|noted|good|great|perfect|excellent|nice|right|sure|correct|yes|no|ok|okay|agreed|makes sense|understood|you(?:'|’)re (?:right|welcome)|(?:good|great|fair|excellent) (?:question|point|catch|call|idea|news)|sounds good|no problem|committed and pushed|build succeeds|success|completed?|finished|both (?:done|merged|pushed)|that(?:'|’)s all|all set|all good)(?: (?:now|successfully|cleanly))?[.! ]*$/u,
  ),
];
const STATUS_CHARS_MAX = 140;

/** The text without announcements, status and offers: what a reader of next week would look for. */
function lastingPart(text: string): string {
  const kept = proseKept(
    text,
    (sentence) => !isAnnouncement(sentence) && !offersWork(sentence) && !isStatus(sentence),
  );
  return kept
    .replaceAll(/\[masked: [a-z-]+\]/g, '')
    .replaceAll(/^[^\p{L}\p{N}]+$/gmu, '')
    .trim();
}

/** "✅ All checks passed". */
const TICK = /^[^\p{L}\p{N}`]{1,4}(?=\p{L})/u;

function isStatus(sentence: string): boolean {
  if (sentence.length > STATUS_CHARS_MAX) return false;
  const said = sentence.replace(TICK, '').toLowerCase();
  return STATUS.some((known) => hasForm(said, known)) && !SAYS_WHY.test(sentence);
}

function hasForm(said: string, { words, form }: Status): boolean {
  return words.some((word) => said.includes(word)) && form.test(said);
}

/** A line that is no prose: code, a heading, an item of a list, a row of a table, a quotation. */
const NO_PROSE = /^\s*(?:[-*+•>|#~]|\d{1,3}[.)]\s|`{3})|^(?: {4}|\t)/;
const FENCE = /^\s*(?:`{3}|~{3})/;
const BETWEEN_SENTENCES = /(?<=[.!?…][)"'`*]{0,2})\s+(?=["'`*(]?[\p{Lu}\p{N}])/u;

/** The lines of a text, those of prose with the sentences that pass. */
function proseKept(text: string, passes: (sentence: string) => boolean): string {
  let isCode = false;
  const kept: string[] = [];
  for (const line of text.split('\n')) {
    if (FENCE.test(line)) isCode = !isCode;
    if (isCode || NO_PROSE.test(line) || line.trim() === '') {
      kept.push(line);
      continue;
    }
    const sentences = line.split(BETWEEN_SENTENCES);
    const passed = sentences.filter((sentence) => passes(sentence.trim()));
    // A line that keeps all its sentences stays as it was written.
    if (passed.length === sentences.length) kept.push(line);
    else if (passed.length > 0) kept.push(passed.join(' '));
  }
  return kept.join('\n');
}
