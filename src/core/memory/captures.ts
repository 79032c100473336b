import type { RecordText } from './record.ts';
import { textDigest } from './reference.ts';
import { lastingPart, withoutAnnouncements } from './announcements.ts';
import { type Heard, withoutEchoes } from './echoes.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import { isFiller, isOrder } from './orders.ts';
import { withoutReminders } from '../conversation/human-text.ts';
import { NO_BLOCKS, type OwnBlocks, withoutOwnBlocks } from '../recall/own-blocks.ts';
import { maskSecrets, stripPrivate } from '../redaction/redaction.ts';
import { hasTerms } from '../recall/terms.ts';
import { withoutWrittenThoughts } from './written-thoughts.ts';

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
