/**
 * Finds whole exchanges that a request may leave out, and makes the edits. An exchange may be left out only if the
 * memory has everything in it: one plain text of the user and one plain answer. It stays if it has anything else: a
 * call, a result, reasoning, a picture, an instruction, a client's wrapper, an unknown field, a secret, a private part.
 */
import { isWellFormed } from '../memory-api/canonical.ts';
import type { RecordText } from '../memory/record.ts';
import { asList, asRecord } from '../bytes/json-fields.ts';
import {
  TEXT_TYPES,
  contentForm,
  type ContentForm,
  type Edit,
  insertBlock,
} from '../plan/item-edits.ts';
import type { Exchange } from '../conversation/exchanges.ts';
import { parseSpan, type Span } from '../bytes/json-scan.ts';
import { estimateTextTokens } from '../bytes/tokens.ts';
import type { Item, RequestView } from '../conversation/view.ts';

/** An exchange that may be left out, because the memory may have its texts. */
export interface Omission {
  /** The bytes of its items and of the separators after them, up to the next item. */
  readonly span: Span;
  /** All texts of the exchange. The memory must prove that it has each of them. */
  readonly texts: readonly RecordText[];
  /**
   * Fingerprint of the conversation up to the end of the next exchange. A request that ends there or earlier has this
   * exchange in full, because the exchange is one of its two newest. So a fork that begins before that end must keep
   * the exchange.
   */
  readonly fingerprint: string;
  readonly items: number;
  /** Estimated tokens of its items. */
  readonly tokens: number;
}

/** Exchanges that recall may quote, because they are not in the request that svc sends. */
export interface Leaving {
  /** Exchanges that earlier requests left out too. */
  readonly gone: readonly Omission[];
  /** Exchanges that this request is the first to leave out, if the memory proves them and something is recalled. */
  readonly going: readonly Omission[];
}

/** The number of newest exchanges that are always kept, including the current one. */
export const KEPT_EXCHANGES = 2;

/** The texts of an exchange; undefined if it has anything but plain text that memories store word for word. */
export type ExchangeTexts = readonly RecordText[] | undefined;

// Longest text, in tokens, that is left out if the model has no tool to read the text again. A recall quotes only a few
// hundred tokens of a text.
const TEXT_TOKENS_MAX = 2_000;

/** Says whether an exchange is short enough to be left out of a request that offers no tool to read it again. */
export function isShortText({ texts, tokens }: Omission): boolean {
  if (tokens <= TEXT_TOKENS_MAX) return true;
  return texts.every(({ text }) => estimateTextTokens(text) <= TEXT_TOKENS_MAX);
}

/** Finds the exchanges that may be left out. `textsOf`: readExchangeTexts, or a cache of it. */
export function findOmissions(
  view: RequestView,
  exchanges: readonly Exchange[],
  textsOf: (exchange: Exchange) => ExchangeTexts,
): readonly Omission[] {
  return exchanges.slice(0, -KEPT_EXCHANGES).flatMap((exchange, at): Omission[] => {
    const items = view.items.slice(exchange.start, exchange.end);
    const [first, next] = [items[0], view.items[exchange.end]];
    const shown = view.items[(exchanges[at + 1]?.end ?? 0) - 1];
    // A user's message must follow the exchange, so that roles still alternate without it.
    if (first === undefined || shown === undefined || next?.role !== 'user') return [];
    if (exchange.isOpen || exchange.wasInterrupted) return [];
    if (exchange.hasToolState || exchange.hasReasoning) return [];
    const texts = textsOf(exchange);
    if (texts === undefined) return [];
    const span = { start: first.start, end: next.start };
    const tokens = items.reduce((sum, item) => sum + item.tokens, 0);
    return [{ span, texts, fingerprint: shown.fingerprint, items: items.length, tokens }];
  });
}

/** Returns the texts of an exchange. Looking for secrets is slow, so callers cache the result. */
export function readExchangeTexts(
  view: RequestView,
  exchange: Exchange,
  { captureHuman, captureAssistant }: Captures,
): ExchangeTexts {
  const [asked, said, ...more] = view.items.slice(exchange.start, exchange.end);
  if (asked === undefined || said === undefined || more.length > 0 || view.isTextInput) return;
  if (asked.role !== 'user' || said.role !== 'assistant') return;
  if (saysMore(asked) || saysMore(said)) return;
  const question = plainText(view, asked);
  const answer = plainText(view, said);
  if (question === undefined || answer === undefined || question !== asked.humanText) return;
  const human = captureHuman(question);
  const assistant = captureAssistant(answer);
  const isWhole = human?.text === question && assistant?.text === answer;
  return isWhole && human !== undefined && assistant !== undefined ? [human, assistant] : undefined;
}

/** Makes the records of the user's text and of the assistant's, as they are stored as memories. */
interface Captures {
  captureHuman(this: void, text: string): RecordText | undefined;
  captureAssistant(this: void, text: string): RecordText | undefined;
}

/** Says whether an item contains more than text: a stated folder or branch, an order, a reference, an interruption. */
function saysMore(item: Item): boolean {
  const { clientOrder, workingFolder, branch } = item;
  const isPlain = clientOrder === undefined && workingFolder === undefined && branch === undefined;
  return !isPlain || item.isReference || item.isInterruption;
}

const ITEM_MEMBERS: ReadonlySet<string> = new Set(['type', 'role', 'content', 'id', 'status']);
const PART_MEMBERS: ReadonlySet<string> = new Set(['type', 'text', 'cache_control']);

/** Returns the only text of the item; undefined if the item has other content. */
function plainText(view: RequestView, item: Item): string | undefined {
  const message = asRecord(parseSpan(view.bytes, item));
  const { type = 'message', status = 'completed', content } = message;
  if (type !== 'message' || status !== 'completed' || holdsMore(message, ITEM_MEMBERS)) return;
  const text = typeof content === 'string' ? content : onlyText(asList(content));
  return text !== undefined && isWellFormed(text) ? text : undefined;
}

function onlyText(parts: readonly unknown[]): string | undefined {
  const part = asRecord(parts[0]);
  const { type, text } = part;
  const isOnly = parts.length === 1 && TEXT_TYPES.has(type) && !holdsMore(part, PART_MEMBERS);
  return isOnly && typeof text === 'string' ? text : undefined;
}

/** Says whether an object has an unknown member that is not empty. `refusal: null` and `annotations: []` are empty. */
function holdsMore(value: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): boolean {
  return Object.entries(value).some(
    ([name, member]) =>
      !known.has(name) && member !== null && !(Array.isArray(member) && member.length === 0),
  );
}

export function isProven({ texts }: Omission, proven: ReadonlySet<string>): boolean {
  return texts.every(({ digest }) => proven.has(digest));
}

/** Says whether the item belongs to one of these exchanges. */
export function isOmitted(item: Span, omissions: readonly Omission[]): boolean {
  return omissions.some(({ span }) => item.start >= span.start && item.start < span.end);
}

/** Writes the first note of a request about left-out exchanges. It depends on nothing but their number. */
export function writeOmissionNote(count: number): string {
  return (
    `[svc left out ${earlierExchanges(count)} of this conversation, kept word for word. ` +
    'To search: svc memory search WORDS. Without a shell: tool memory_search]'
  );
}

/** Writes a later note. Only the first one says how to find left-out exchanges. */
export function writeNextOmissionNote(count: number): string {
  return `[svc left out ${earlierExchanges(count)} here as well]`;
}

function earlierExchanges(count: number): string {
  return count === 1 ? '1 earlier exchange' : `${count} earlier exchanges`;
}

export interface Omitting {
  readonly edits: readonly Edit[];
  readonly items: number;
  /** Estimated tokens by which the request is shorter. */
  readonly saved: number;
}

/**
 * Makes the edits that leave exchanges out; none if a note has no place. The note goes to the next user message that
 * stays, and says how many exchanges are missing. It depends on nothing behind it, so later requests repeat its bytes.
 */
export function omit(view: RequestView, omissions: readonly Omission[]): Omitting {
  if (omissions.length === 0) return NOTHING;
  const gaps = gapsOf(view, omissions);
  if (gaps === undefined) return NOTHING;
  const cuts = omissions.map(({ span }) => ({ ...span, bytes: NO_BYTES }));
  const notes = gaps.map((gap, at) => ({
    ...gap,
    block: at === 0 ? writeOmissionNote(gap.count) : writeNextOmissionNote(gap.count),
  }));
  const gone = omissions.reduce((sum, { tokens }) => sum + tokens, 0);
  const written = notes.reduce((sum, { block }) => sum + estimateTextTokens(block), 0);
  return {
    edits: [...cuts, ...notes.flatMap((note) => insertBlock(view, note.place, note))],
    items: omissions.reduce((sum, { items }) => sum + items, 0),
    saved: Math.max(0, gone - written),
  };
}

/** The number of exchanges that are missing directly before a user message. */
interface Gap {
  readonly place: Item;
  readonly form: ContentForm;
  readonly count: number;
}

/** Returns the gaps in the order of the request; undefined if an exchange would be left out without a note. */
function gapsOf(view: RequestView, omissions: readonly Omission[]): readonly Gap[] | undefined {
  const inOrder = omissions.toSorted((one, other) => one.span.start - other.span.start);
  const gaps: Gap[] = [];
  let [passed, told] = [0, 0];
  for (const item of view.items) {
    while ((inOrder[passed]?.span.end ?? Infinity) <= item.start) passed += 1;
    const isGone = (inOrder[passed]?.span.start ?? Infinity) <= item.start;
    if (isGone || passed === told || item.humanText === '') continue;
    const form = noteForm(view, item);
    if (form === undefined) continue;
    gaps.push({ place: item, form, count: passed - told });
    told = passed;
  }
  return told === inOrder.length ? gaps : undefined;
}

/**
 * Returns the form of a note at an item; undefined if the item takes none. A note is appended to the message's text
 * instead of becoming a part of its own, because a client may later send a list of one part as a string (see
 * item-edits.ts). Anthropic calls the two messages equivalent (the reference of `messages` in @anthropic-ai/sdk
 * 0.129.0, read 2026-11-30), so the note must be the same text in both.
 */
function noteForm(view: RequestView, item: Item): ContentForm | undefined {
  const form = contentForm(view, item);
  return form === 'part' && item.toolResultIds.length === 0 ? 'text' : form;
}

const NO_BYTES = new Uint8Array();
const NOTHING: Omitting = { edits: [], items: 0, saved: 0 };
