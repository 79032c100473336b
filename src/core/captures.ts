import { createHash } from 'node:crypto';
import type { Answer } from './answer.ts';
import type { Exchange } from './exchanges.ts';
import { stripRecallBlocks } from './recall-block.ts';
import { maskSecrets, stripPrivate } from './redaction.ts';

/**
 * Decides what of a conversation becomes a memory: what the person typed and what the assistant
 * visibly answered, once. Never reasoning, tool arguments, client wrappers, recalled blocks,
 * fillers or a half answer; secrets are masked before anything else sees the text.
 */

export interface CapturedText {
  /** base64url sha256 of role and text. */
  readonly digest: string;
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

// The longest typed prompts and answers measured are under 30 kB; what is longer is pasted data, of
// which the start is kept.
const TEXT_CHARS_MAX = 32_768;

/**
 * What the exchange's human said, when it is worth keeping. Undefined for fillers: "ok" or
 * "continue" recalls nothing and matches everything.
 */
export function captureHuman(humanText: string): CapturedText | undefined {
  const text = cleanText(humanText);
  return text === '' || isFiller(text) ? undefined : captured('user', text);
}

/** What the assistant visibly answered in a whole exchange; undefined when there is nothing to keep. */
export function captureAssistant(assistantText: string): CapturedText | undefined {
  const text = cleanText(assistantText);
  return text === '' || isFiller(text) ? undefined : captured('assistant', text);
}

/** The visible text of an open exchange once this answer has closed it. */
export function closedText(exchange: Exchange, answer: Answer): string {
  return [exchange.assistantText, answer.text].filter((text) => text.trim() !== '').join('\n\n');
}

/** The question for a recall: masked like everything that leaves for a memory. */
export function questionText(text: string, charsMax: number): string {
  const clean = cleanText(text);
  if (clean.length <= charsMax) return clean;
  // People put the point first or last; what lies between is usually pasted.
  const half = charsMax >> 1;
  return `${clean.slice(0, half)}\n${clean.slice(-half)}`;
}

/** The digest that this text has as a memory: what a request already holds is not recalled. */
export function heldDigest(role: 'user' | 'assistant', text: string): string {
  return digestOf(role, cleanText(text));
}

function captured(role: 'user' | 'assistant', text: string): CapturedText {
  return { digest: digestOf(role, text), role, text };
}

function digestOf(role: 'user' | 'assistant', text: string): string {
  return createHash('sha256').update(`${role}\n${text}`).digest('base64url');
}

function cleanText(text: string): string {
  const visible = stripPrivate(stripRecallBlocks(text)).trim();
  const masked = maskSecrets(visible.slice(0, TEXT_CHARS_MAX)).text;
  return masked.trim();
}

// Words that steer but say nothing: an exchange of these alone is no memory. English and the most
// common short forms in other languages that coding sessions show.
const FILLER_WORDS = new Set(
  (
    'ok okay k yes yeah yep y no nope n sure fine good great nice cool perfect thanks thank you thx please ' +
    'noted understood got will go on ahead continue proceed next do it that this again retry try more keep going stop wait done hi hello hey ' +
    'ja nein danke weiter oui non merci si sí gracias sim não obrigado да нет спасибо 好 好的 继续 是 はい 続けて'
  ).split(' '),
);

// A memory of five filler words is still none; with a sixth word people begin to say something.
const FILLER_WORDS_MAX = 5;

// Five words of the list are at most this long: anything longer says something.
const FILLER_CHARS_MAX = 64;

function isFiller(text: string): boolean {
  if (text.length > FILLER_CHARS_MAX) return false;
  const words = text
    .toLowerCase()
    .split(/[\s.,!?;:…]+/u)
    .filter((word) => word !== '');
  return words.length <= FILLER_WORDS_MAX && words.every((word) => FILLER_WORDS.has(word));
}
