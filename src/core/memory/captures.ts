import type { MemoryRecord, RecordText } from './record.ts';
import { textDigest } from './reference.ts';
import { type Heard, withoutEchoes } from './echoes.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import { isFiller, isOrder } from './orders.ts';
import { withoutReminders } from '../conversation/human-text.ts';
import { QUESTION_CHARS_MAX } from '../recall/injections.ts';
import { NO_BLOCKS, type OwnBlocks, withoutOwnBlocks } from '../recall/own-blocks.ts';
import { maskSecrets, stripPrivate } from '../redaction/redaction.ts';
import { quietShareAt } from '../recall/running-share.ts';
import { hasTerms } from '../recall/terms.ts';
import type { ProxySettings } from '../settings/settings.ts';
import { announcesStep, offersWork, SAYS_WHY } from './next-steps.ts';

/**
 * Makes the records of a conversation: of the user's typed text and of the assistant's visible answer. It leaves out
 * private parts, written reasoning, client reminders, recalled blocks and what only repeats them, announcements,
 * fillers and orders of a few words. Secrets are masked in every text that becomes a record or a question.
 */

// Bound on the characters of a stored text. The longest typed prompts and answers measured are under 30 kB. A longer
// text probably has pasted data, so only its beginning is stored.
export const TEXT_CHARS_MAX = 32_768;

/** Returns the record of the user's text; undefined if it is empty or only steers the agent: "ok", "commit this". */
export function captureHuman(
  humanText: string,
  own: OwnBlocks = NO_BLOCKS,
): RecordText | undefined {
  const text = cleanText(humanText, own);
  return text === '' || isOrder(text) ? undefined : captured('user', text);
}

/**
 * Returns the record of the assistant's visible text of an exchange; undefined if there is nothing to store. `heard`:
 * the memories in the request, because an answer that only repeats them is not stored. `lastText`: the part of
 * `assistantText` after the last tool call.
 */
export function captureAssistant(
  assistantText: string,
  heard: Heard = NOTHING_HEARD,
  lastText: string = assistantText,
): AnswerText | undefined {
  const text = withoutEchoes(cleanAnswer(assistantText, heard), heard);
  if (saysLittle(text)) return undefined;
  const lastFrom = lastText === assistantText ? 0 : lastFromIn(text, lastText, heard);
  return { ...captured('assistant', text), ...(lastFrom > 0 && { lastFrom }) };
}

type AnswerText = RecordText & Pick<MemoryRecord, 'lastFrom'>;

/** Returns the index of `lastText`, as it is stored, in the stored text; 0 if the stored text does not end with it. */
function lastFromIn(text: string, lastText: string, heard: Heard): number {
  const clean = cleanAnswer(lastText, heard);
  // cleanAnswer() keeps a short remark that is the whole text, but removes one that has other paragraphs beside it.
  for (const kept of [clean, withoutShortRemarks(clean)]) {
    const last = withoutEchoes(kept, heard);
    if (text.endsWith(last) && (last !== '' || kept === '')) return text.length - last.length;
  }
  return 0;
}

/**
 * Returns the record of a text from an export, or of one that a user wrote as a memory; undefined if nothing is left.
 * Secrets are masked and private parts removed, because the text may come from anywhere. Blocks of svc were removed
 * when the text was first stored, so a passage that looks like a block is the user's text and stays.
 */
export function captureStored(role: 'user' | 'assistant', text: string): RecordText | undefined {
  const kept = maskSecrets(stripPrivate(text)).text;
  return kept.trim() === '' ? undefined : captured(role, kept);
}

/** Returns the question for a recall, masked like every text that goes to a memory. */
export function questionText(text: string, charsMax: number): string {
  const visible = visibleText(text);
  if (visible.length <= charsMax) return maskSecrets(visible).text.slice(0, charsMax);
  // Keep the beginning and the end, where the user's own words usually are; the middle is mostly pasted.
  const half = charsMax >> 1;
  return `${startOf(visible, half)}\n${endOf(visible, half)}`;
}

/**
 * Returns the question for a preview of recall. It asks like the first prompt of a session, on no branch, and without
 * the list of earlier sessions.
 */
export function lookQuestion(
  prompt: string,
  {
    settings: { recalledTokensMax: tokensMax, recallQuietPercent },
    conversation = '',
    ...place
  }: {
    readonly space: string;
    readonly now: number;
    readonly settings: Pick<ProxySettings, 'recalledTokensMax' | 'recallQuietPercent'>;
    readonly conversation?: string;
  },
) {
  const humanText = questionText(prompt, QUESTION_CHARS_MAX);
  const agent = {
    conversation,
    branch: '',
    quietShare: quietShareAt(recallQuietPercent / 100, 0),
    briefTokensMax: 0,
  };
  return { ...place, humanText, assistantText: '', excludeDigests: [], tokensMax, agent };
}

/** The texts of an exchange as they would be stored, and their digests. Callers cache this, because masking is slow. */
export interface CleanExchange {
  /** The user's text as the request has it. */
  readonly humanText: string;
  /** The digest of the user's text as it would be stored. */
  readonly humanDigest: string;
  /** The answer as it would be stored if no memory was recalled. */
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

/** Returns the digests that an exchange would have as memories, so that recall skips what the request already has. */
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

// A secret that was cut may match no rule. So svc masks more characters than it keeps, and drops the surplus after
// masking. A private key of 4,096 bits, one of the longest secrets, has some 3,300 characters.
const CUT_CHARS = 8_192;

/** Returns the masked beginning of a text, up to `charsMax` characters. */
function startOf(text: string, charsMax: number): string {
  const { text: masked } = maskSecrets(text.slice(0, charsMax + CUT_CHARS));
  const isCut = text.length > charsMax + CUT_CHARS;
  return masked.slice(0, Math.min(charsMax, Math.max(0, masked.length - (isCut ? CUT_CHARS : 0))));
}

/** Returns the masked end of a text, up to `charsMax` characters. */
function endOf(text: string, charsMax: number): string {
  const { text: masked } = maskSecrets(text.slice(-(charsMax + CUT_CHARS)));
  const isCut = text.length > charsMax + CUT_CHARS;
  const start = Math.max(isCut ? CUT_CHARS : 0, masked.length - charsMax);
  return masked.slice(start);
}

/**
 * Masks the secrets of an answer, and removes written reasoning, private parts, blocks of svc, announcements and client
 * reminders. Models repeat such reminders from tool results, where clients put them.
 */
function cleanAnswer(text: string, own: OwnBlocks = NO_BLOCKS): string {
  return withoutAnnouncements(cleanText(withoutReminders(withoutWrittenThoughts(text)), own));
}

/**
 * Says whether an answer is empty, is filler, or has fewer than two terms in the first 400 characters of its lasting
 * part: "All tests pass."
 */
function saysLittle(text: string): boolean {
  return text === '' || isFiller(text) || !hasTerms(lastingPart(text).slice(0, 400), 2);
}

/** Names of the XML elements into which models write reasoning. */
const NAMES = '(?:\\w+:)?think(?:ing)?|thoughts?|reasoning';
/** Pairs of marks around reasoning: Mistral, Cohere, Gemma 4, Kimi, Apertus. */
const PAIRS = [
  ['[THINK]', '[/THINK]'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|channel>thought', '<channel|>'],
  ['◁think▷', '◁/think▷'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
] as const;

/** Matches texts that may have written reasoning: every form of it contains one of these words. */
const MAYBE = /think|thought|reasoning|channel|analysis|inner_/i;

// Matches an element of reasoning at the beginning of a line. Without a closing tag it reaches to the end, because
// the answer was cut.
const ELEMENT = new RegExp(`(?:^|\\n)[ \\t]*<(${NAMES})(?:\\s[^>\\n]*)?>[^]*?(?:</\\1>|$)`, 'gi');
const PAIRED = PAIRS.map(
  ([open, close]) =>
    new RegExp(`(?:^|\\n)[ \\t]*${literal(open)}[^]*?(?:${literal(close)}|$)`, 'g'),
);
// A mark directly behind or before a quotation mark or a backtick does not count: the text is about the mark.
const MARK = new RegExp(
  `(?<![\`'"])(?:<(/?)(${NAMES})>|${PAIRS.flat().map(literal).join('|')})(?![\`'"])`,
  'gi',
);

/**
 * Removes reasoning that a model wrote into its visible text. That happens if a server of open models does not separate
 * the two, and with Gemini if the client asks for thoughts. The forms are those of vLLM's reasoning parsers, of
 * Gemini's OpenAI layer and of OpenAI's harmony format, as documented in November 2026.
 */
function withoutWrittenThoughts(text: string): string {
  if (!MAYBE.test(text)) return text;
  let rest = finalChannel(text).replaceAll(ELEMENT, '\n');
  for (const pair of PAIRED) rest = rest.replaceAll(pair, '\n');
  return rest.slice(afterLastClose(rest)).trim();
}

/**
 * Returns the index after the last closing mark that has no opening one; 0 if there is none. The prompt's template may
 * have opened the reasoning, so that the answer only closes it.
 */
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
/**
 * Matches the reasoning of an answer in the harmony format from which a server removed the marks such as `<|channel|>`,
 * but not the words between them: `analysis`, the reasoning, `assistantfinal`.
 */
const UNMARKED = /^\s*analysis[^]*assistantfinal/;

/** Removes harmony's messages except those of the channel `final`, and of `commentary` that is not for a tool. */
function finalChannel(text: string): string {
  if (!text.includes('<|channel|>')) return text.replace(UNMARKED, '');
  const said: string[] = [];
  for (const part of text.split(MESSAGE_ENDS)) {
    const [isMessage, channel, recipient = '', content = ''] = MESSAGE.exec(part) ?? [];
    const isSaid = channel === 'final' || (channel === 'commentary' && !recipient.includes('to='));
    // Skip a message that was cut off before its content.
    if (isMessage === undefined && !/^\s*<\|channel\|>/.test(part)) said.push(part);
    else if (isSaid) said.push(content);
  }
  return said.join('\n');
}

function literal(mark: string): string {
  return mark.replaceAll(/[[\]|/]/g, String.raw`\$&`);
}

/** Longest announcement or remark, in characters: a longer sentence says something that may be useful later. */
const ANNOUNCEMENT_CHARS_MAX = 200;

/** Texts that clients send in the assistant's name when it said nothing. */
const NO_ANSWERS: ReadonlySet<string> = new Set(['No response requested.', '(no content)']);

/**
 * Removes sentences that announce the assistant's next step, and short remarks between paragraphs, because nobody needs
 * them later. Code, lists and headings stay.
 */
function withoutAnnouncements(text: string): string {
  const kept = proseKept(text, (sentence) => !isAnnouncement(sentence)).trim();
  return kept.includes('\n\n') ? withoutShortRemarks(kept) : kept;
}

function withoutShortRemarks(text: string): string {
  return text
    .split(/\n{2,}/)
    .filter((paragraph) => !isShortRemark(paragraph))
    .join('\n\n')
    .trim();
}

/** A short remark has fewer terms than this. */
const REMARK_TERMS_MIN = 3;

/**
 * Says whether a paragraph is a short remark between two steps, such as "That worked.". A heading, a list item or a
 * line of code may be short and matter.
 */
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
  /** A sentence of this form has at least one of these words or parts of words. */
  readonly words: readonly string[];
  readonly form: RegExp;
}

function status(words: string, form: RegExp): Status {
  return { words: words.split('|'), form };
}

/**
 * Forms of sentences that report a status. V8 compiles a form when a sentence first contains one of its words, which
 * mostly takes less than half a millisecond. A single pattern for all forms delayed the first answer after a start by
 * 10 ms. The forms match lower case only, which halves the time. They have no Unicode classes: a pattern with one takes
 * 400 ms for its first text that is not ASCII.
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
  // The empty word is in every sentence, so this form is always tried.
  status(
    '',
    /^(?:all )?(?:done|committed|pushed|merged|shipped|fixed|saved|updated|confirmed|got it|noted|good|great|perfect|excellent|nice|right|sure|correct|yes|no|ok|okay|agreed|makes sense|understood|you(?:'|’)re (?:right|welcome)|(?:good|great|fair|excellent) (?:question|point|catch|call|idea|news)|sounds good|no problem|committed and pushed|build succeeds|success|completed?|finished|both (?:done|merged|pushed)|that(?:'|’)s all|all set|all good)(?: (?:now|successfully|cleanly))?[.! ]*$/u,
  ),
];
/** Longest sentence, in characters, that is compared with STATUS. */
const STATUS_CHARS_MAX = 140;

/** Returns the text without announcements, status, offers and masked secrets: the part that is useful later. */
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

/** Matches the signs before a status, as in "✅ All checks passed". */
const TICK = /^[^\p{L}\p{N}`]{1,4}(?=\p{L})/u;

function isStatus(sentence: string): boolean {
  if (sentence.length > STATUS_CHARS_MAX) return false;
  const said = sentence.replace(TICK, '').toLowerCase();
  return STATUS.some((known) => hasForm(said, known)) && !SAYS_WHY.test(sentence);
}

function hasForm(said: string, { words, form }: Status): boolean {
  return words.some((word) => said.includes(word)) && form.test(said);
}

/** Matches a line that is no prose: code, a heading, a list item, a table row, a quotation. */
const NO_PROSE = /^\s*(?:[-*+•>|#~]|\d{1,3}[.)]\s|`{3})|^(?: {4}|\t)/;
const FENCE = /^\s*(?:`{3}|~{3})/;
const BETWEEN_SENTENCES = /(?<=[.!?…][)"'`*]{0,2})\s+(?=["'`*(]?[\p{Lu}\p{N}])/u;

/** Returns a text in which prose keeps only the sentences that pass; other lines stay. */
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
    // A line that keeps all its sentences is not rewritten.
    if (passed.length === sentences.length) kept.push(line);
    else if (passed.length > 0) kept.push(passed.join(' '));
  }
  return kept.join('\n');
}
