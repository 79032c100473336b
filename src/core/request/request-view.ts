import { markedMs } from '../dialects/common.ts';
import type { Dialect, Item, ItemTraits, RequestView, Shell, SoFar } from '../conversation/view.ts';
import type { HasFrames } from '../dialects/descriptor.ts';
import { dialectOf, readItem } from '../dialects/dialects.ts';
import { chainFingerprint, digestItem, digestTextInput } from '../conversation/fingerprint.ts';
import {
  DEPTH_MAX,
  elementsOf,
  endsWithout,
  findMember,
  firstElement,
  firstMember,
  isScalar,
  isSpace,
  listEnd,
  nextElement,
  nextMember,
  opensList,
  opensString,
  parseSpan,
  skipSpace,
  stringEnd,
  valueEnd,
  type Span,
} from '../bytes/json-scan.ts';
import { addItem } from '../conversation/exchanges.ts';
import { estimateSteps, estimateTokens } from '../bytes/tokens.ts';
import { Pace, STEP_BYTES, type Steps } from '../bytes/steps.ts';
import { Buffer } from 'node:buffer';
import { asList, asRecord, asText, type Fields, isRecord } from '../bytes/json-fields.ts';
import { pictureSize } from '../bytes/picture-size.ts';

/**
 * Parses a request body into a view. The bytes are authoritative: nothing here changes or rebuilds them.
 * A body becomes a view only if all of it is valid JSON. Every element of the list is parsed separately, and so is the
 * shell, which is the body with its list emptied. So the next request of a conversation is cheap: svc parses only the
 * elements that the earlier body does not have, and the shell if that has changed.
 */

/**
 * Bounds on bodies that svc reads. A larger one is relayed unchanged: reading it would delay all other requests, and
 * hardly any model has a window for so much.
 */
export const READ_LIMITS = {
  /** Items. A window of a million tokens has some 10,000 messages and tool results. */
  items: 20_000,
  /** Messages that a user typed. svc looks each up in the ledger. */
  humans: 4_000,
  /**
   * Bytes of one item. A message with a PDF file may take nearly a whole request, of at most 32 MB (Anthropic's API
   * overview, "Request size limits", read 2026-11-29).
   */
  itemBytes: 32 << 20,
  /** Bytes outside the list: instructions and tools. */
  shellBytes: 8 << 20,
  /** Characters of users and assistants: four times as many as a window of a million tokens has. */
  textChars: 16 << 20,
} as const;

// Bounds on one element of the list, which is two levels deep in the body. Its parts are its strings and its bytes
// outside strings: a tool call with 10,000 arguments has 60,000. For the most parts JSON.parse takes up to 40 ms.
const ELEMENT_LIMITS = { levels: DEPTH_MAX - 2, parts: 1 << 17 };

const EMPTY_LIST = Buffer.from('[]');
/** The beginning of a text of svc's hooks in a client's messages; see core/recall/own-blocks.ts. */
const HOOK_MARK = Buffer.from('<svc-memory id=');

/** An earlier view, and the number of first bytes that the new body has in common with it. */
export interface Earlier {
  readonly previous: RequestView;
  readonly shared: number;
}

/** What decides how a body is read: its dialect, and whether reminders in tool outputs may have typed text. */
export interface ReadAs {
  readonly dialect: Dialect;
  readonly hasFrames: HasFrames;
}

/** Says whether an earlier view was read in the same way. */
export function isReadAs(view: RequestView, { dialect, hasFrames }: ReadAs): boolean {
  if (view.dialect !== dialect) return false;
  return view.readsFrames === undefined || view.readsFrames === hasFrames();
}

/**
 * Parses a decoded body into a view, in steps of mostly a few milliseconds, between which svc serves other requests.
 * `earlier` may be any earlier view. The more it has in common with the body, the less is read; the result is the same.
 * Returns undefined if the body is no JSON object with exactly one member `listKey` of the right type, nests deeper
 * than 512 levels, or has an element or a member with too many parts (see ELEMENT_LIMITS). Returns 'too_large' if the
 * body exceeds READ_LIMITS.
 */
export function* viewSteps(
  bytes: Buffer,
  as: ReadAs,
  earlier: Earlier | undefined,
): Steps<RequestView | 'too_large' | undefined> {
  const { dialect, hasFrames } = as;
  const isAlike = earlier !== undefined && isReadAs(earlier.previous, as);
  const known = isAlike ? compareWith(earlier, bytes) : undefined;
  const { listKey, takesTextInput } = dialectOf(dialect);
  const start = known?.previous.list.start ?? findMember(bytes, listKey);
  if (start > READ_LIMITS.shellBytes) return 'too_large';
  const isTextInput = takesTextInput && opensString(bytes, start);
  const read = isTextInput
    ? yield* readTextInput(bytes, { dialect, start })
    : yield* readList(bytes, { dialect, hasFrames, start, items: known?.items ?? [] });
  if (read === undefined || read === 'too_large') return read;
  const { list, items } = read;
  if (bytes.length - list.end > READ_LIMITS.shellBytes) return 'too_large';
  const shell = yield* readShell(bytes, dialect, list, known?.previous);
  if (shell === undefined) return undefined;
  const soFar = items.at(-1)?.soFar;
  const tokens = shell.tokens + (soFar?.tokens ?? 0);
  return {
    dialect,
    readsFrames: soFar?.holdsFrame === true ? hasFrames() : undefined,
    bytes,
    list,
    isTextInput,
    items,
    shell,
    tokens,
  };
}

interface Known {
  /** The earlier view. Both bodies have the same bytes up to the first byte of the list or string. */
  readonly previous: RequestView;
  /** The earlier view's items that the new body has at the same offsets. */
  readonly items: Item[];
}

function compareWith({ previous, shared }: Earlier, bytes: Buffer): Known | undefined {
  if (shared <= previous.list.start) return undefined;
  // An item whose bytes are all shared is the same in both bodies. Only a scalar may continue after them: 12, 123.
  let count = previous.items.length;
  while (count > 0 && !isShared(previous.items[count - 1], bytes, shared)) count -= 1;
  return { previous, items: previous.items.slice(0, count) };
}

function isShared(item: Item | undefined, bytes: Buffer, shared: number): boolean {
  if (item === undefined || item.end > shared) return false;
  return item.end < shared || !isScalar(bytes, item.start);
}

interface ListRead {
  readonly list: Span;
  readonly items: readonly Item[];
}

interface ListStart extends ReadAs {
  /** The offset at which the list begins; -1 if the body has none. */
  readonly start: number;
  /** Items that are known already; the others are appended. */
  readonly items: Item[];
}

function* readList(
  bytes: Buffer,
  { dialect, hasFrames, start, items: all }: ListStart,
): Steps<ListRead | 'too_large' | undefined> {
  if (!opensList(bytes, start)) return undefined;
  const pace = new Pace();
  let last = all.at(-1);
  let at = last === undefined ? firstElement(bytes, start) : nextElement(bytes, last.end);
  while (at !== -1) {
    if (all.length === READ_LIMITS.items) return 'too_large';
    const read = yield* readOne(bytes, at, { dialect, hasFrames, index: all.length, last });
    if (read === undefined || read === 'too_large') return read;
    last = read;
    const { textChars, humanCount } = last.soFar;
    const isOver = textChars > READ_LIMITS.textChars || humanCount > READ_LIMITS.humans;
    if (isOver) return 'too_large';
    all.push(last);
    if (pace.isDue(last.end - at)) yield;
    at = nextElement(bytes, last.end);
  }
  const end = listEnd(bytes, last?.end ?? start + 1);
  return end === -1 ? undefined : { list: { start, end }, items: all };
}

interface ItemPlace extends ReadAs {
  readonly index: number;
  /** The item before this one. */
  readonly last: Item | undefined;
}

function* readOne(
  bytes: Buffer,
  start: number,
  place: ItemPlace,
): Steps<Item | 'too_large' | undefined> {
  const limit = start + READ_LIMITS.itemBytes;
  const end = valueEnd(upTo(bytes, limit), start, ELEMENT_LIMITS);
  if (end === -1) return limit < bytes.length ? 'too_large' : undefined;
  const span = { start, end };
  const isLong = end - start > STEP_BYTES;
  if (isLong) yield;
  const value = parseSpan(bytes, span);
  if (value === undefined) return undefined;
  if (isLong) yield;
  const traits = readItem(place.dialect, value, place.hasFrames);
  const media = mediaIn(place.dialect, value);
  const cacheMs = markedMs(value);
  if (isLong) yield;
  const isText = media.length === 0 && !isLong;
  const tokens = isText ? estimateTokens(bytes, start, end) : yield* itemTokens(bytes, span, media);
  return makeItem(traits, {
    span,
    // Only Responses takes a string instead of the list, and only there a message may state its type.
    digest: digestItem(bytes, span, dialectOf(place.dialect).takesTextInput),
    fingerprintBefore: place.last?.fingerprint ?? '',
    tokens,
    soFar: addItem(place.last?.soFar, traits, {
      index: place.index,
      tokens,
      cacheMs,
      holdsHookMark: bytes.subarray(start, end).includes(HOOK_MARK),
    }),
  });
}

/** Returns the bytes before `end`, without a copy. */
function upTo(bytes: Buffer, end: number): Buffer {
  return end < bytes.length ? bytes.subarray(0, end) : bytes;
}

// Bound on the payloads of one item that svc searches for in vain, because each search reads the rest of the item.
const MISSED_MAX = 4;

/** Estimates an item's tokens. `media`: its pictures and other media, which count with tokens of their own. */
function* itemTokens(bytes: Buffer, { start, end }: Span, media: readonly Media[]): Steps<number> {
  const upToEnd = media.length === 0 ? bytes : upTo(bytes, end);
  let at = start;
  let tokens = 0;
  let missed = 0;
  for (const { payload, tokens: own } of media) {
    tokens += own;
    if (payload === '' || missed === MISSED_MAX) continue;
    const found = findPayload(upToEnd, payload, at);
    if (found === undefined) {
      missed += 1;
      continue;
    }
    tokens += yield* estimateSteps(bytes, at, found.start);
    at = found.end;
  }
  return tokens + (yield* estimateSteps(bytes, at, end));
}

interface ItemFacts {
  readonly span: Span;
  readonly digest: string;
  readonly fingerprintBefore: string;
  readonly tokens: number;
  readonly soFar: SoFar;
}

// Always sets the same members in the same order: V8 reads objects of one shape several times faster.
function makeItem(traits: ItemTraits, facts: ItemFacts): Item {
  return {
    start: facts.span.start,
    end: facts.span.end,
    role: traits.role,
    humanText: traits.humanText,
    assistantText: traits.assistantText,
    toolCalls: traits.toolCalls,
    toolResultIds: traits.toolResultIds,
    hasReasoning: traits.hasReasoning,
    thoughts: traits.thoughts,
    isThought: traits.isThought,
    isReference: traits.isReference,
    isInterruption: traits.isInterruption,
    isCompaction: traits.isCompaction,
    isSummary: traits.isSummary,
    isUnverified: traits.isUnverified,
    holdsFrame: traits.holdsFrame,
    workingFolder: traits.workingFolder,
    statedBy: traits.statedBy,
    branch: traits.branch,
    clientOrder: traits.clientOrder,
    digest: facts.digest,
    fingerprint:
      traits.isThought === true
        ? facts.fingerprintBefore
        : chainFingerprint(
            traits.isCompaction === true ? '' : facts.fingerprintBefore,
            facts.digest,
          ),
    tokens: facts.tokens,
    soFar: facts.soFar,
  };
}

function* readTextInput(
  bytes: Buffer,
  { dialect, start }: Pick<ListStart, 'dialect' | 'start'>,
): Steps<ListRead | 'too_large' | undefined> {
  const limit = start + READ_LIMITS.itemBytes;
  const end = stringEnd(upTo(bytes, limit), start);
  if (end === -1 && limit < bytes.length) return 'too_large';
  const list = { start, end };
  const content = end === -1 ? undefined : parseSpan(bytes, list);
  if (content === undefined) return undefined;
  const traits = readItem(dialect, { role: 'user', content });
  if (traits.humanText.length > READ_LIMITS.textChars) return 'too_large';
  const tokens = yield* estimateSteps(bytes, start, end);
  const item = makeItem(traits, {
    span: list,
    digest: digestTextInput(bytes, list),
    fingerprintBefore: '',
    tokens,
    soFar: addItem(undefined, traits, { index: 0, tokens, cacheMs: 0, holdsHookMark: false }),
  });
  return { list, items: [item] };
}

function* readShell(
  bytes: Buffer,
  dialect: Dialect,
  list: Span,
  previous: RequestView | undefined,
): Steps<Shell | undefined> {
  if (previous !== undefined && endsAlike(previous, bytes, list.end)) return previous.shell;
  if (!endsWithout(bytes, list.end, dialectOf(dialect).listKey)) return undefined;
  const [before, after] = [bytes.subarray(0, list.start), bytes.subarray(list.end)];
  const emptied = Buffer.concat([before, EMPTY_LIST, after]);
  const value = yield* parseSteps(emptied);
  if (value === undefined) return undefined;
  const tokens = yield* estimateSteps(bytes, 0, list.start);
  return { value, tokens: tokens + (yield* estimateSteps(bytes, list.end, bytes.length)) };
}

/** Says whether both bodies have the same bytes after the list, which ends at `end`. */
function endsAlike({ bytes: before, list }: RequestView, bytes: Buffer, end: number): boolean {
  const isAsLong = before.length - list.end === bytes.length - end;
  return isAsLong && before.compare(bytes, end, bytes.length, list.end, before.length) === 0;
}

interface Media {
  /** The base64 payload as in the body; '' if the body only has a link. */
  readonly payload: string;
  readonly tokens: number;
}

const NONE: readonly Media[] = [];

// A PDF page is 1,500 to 3,000 tokens by Anthropic's guide. The number of pages is compressed in the file, so each
// document counts as three pages.
const DOCUMENT_TOKENS = 6_000;
// OpenAI bills a token per 100 ms of sound. svc does not read the length and assumes a minute.
const AUDIO_TOKENS = 600;
// Tokens of a video: about as many as three large pictures, because Qwen and others sample pictures from it.
const VIDEO_TOKENS = 4_800;

/**
 * Returns an item's pictures, documents, sounds and videos in the order of the body, with their estimated tokens.
 * Providers bill them by their own rules, not by the length of the base64: a screenshot of 190,000 characters is 1,600
 * tokens. `value`: the item's parsed JSON.
 */
function mediaIn(dialect: Dialect, value: unknown): readonly Media[] {
  const item = asRecord(value);
  const made = item['type'] === 'image_generation_call' ? asText(item['result']) : '';
  if (made !== '') return [{ payload: made, tokens: pictureTokens(dialect, made, '') }];
  const { content, output } = item;
  const parts = Array.isArray(content) ? content : Array.isArray(output) ? output : [output];
  return mediaOf(dialect, parts);
}

function mediaOf(dialect: Dialect, parts: readonly unknown[]): readonly Media[] {
  let found: Media[] | undefined;
  for (const value of parts) {
    const media = mediaOfPart(dialect, asRecord(value));
    if (media.length > 0) (found ??= []).push(...media);
  }
  return found ?? NONE;
}

function mediaOfPart(dialect: Dialect, part: Fields): readonly Media[] {
  switch (part['type']) {
    case 'tool_result':
      return mediaOf(dialect, asList(part['content']));
    case 'image':
    case 'image_url':
    case 'input_image':
    case 'computer_screenshot': {
      const { payload, detail } = pictureOf(part);
      return [{ payload, tokens: pictureTokens(dialect, payload, detail) }];
    }
    case 'document':
      return documentOf(dialect, part);
    case 'file':
    case 'input_file': {
      const data = asRecord(part['file'])['file_data'] ?? part['file_data'];
      return [{ payload: base64In(asText(data)), tokens: DOCUMENT_TOKENS }];
    }
    case 'input_audio': {
      const data = asRecord(part['input_audio'])['data'] ?? part['data'];
      return [{ payload: base64In(asText(data)), tokens: AUDIO_TOKENS }];
    }
    case 'video_url': {
      const url = asText(asRecord(part['video_url'])['url']);
      return [{ payload: base64In(url), tokens: VIDEO_TOKENS }];
    }
  }
  return NONE;
}

/** Returns the media of a document: a plain text has none, and one with parts has those of its parts. */
function documentOf(dialect: Dialect, part: Fields): readonly Media[] {
  const source = asRecord(part['source']);
  if (source['type'] === 'text') return NONE;
  if (source['type'] === 'content') return mediaOf(dialect, asList(source['content']));
  return [{ payload: base64In(asText(source['data'])), tokens: DOCUMENT_TOKENS }];
}

function pictureOf(part: Fields): { readonly payload: string; readonly detail: string } {
  const image = part['image_url'];
  const { url, detail } = asRecord(image);
  const data = asRecord(part['source'])['data'] ?? url ?? image;
  return { payload: base64In(asText(data)), detail: asText(detail ?? part['detail']) };
}

const BASE64_MARK = ';base64,';
// Longest beginning of a data URL; it names the media type.
const URL_HEAD_CHARS = 256;

/** Returns the base64 of a data URL, or a text that is base64 itself; '' for any other URL. */
function base64In(text: string): string {
  if (!text.startsWith('data:')) return text.includes('://') ? '' : text;
  const mark = text.slice(0, URL_HEAD_CHARS).indexOf(BASE64_MARK);
  return mark === -1 ? '' : text.slice(mark + BASE64_MARK.length);
}

function pictureTokens(dialect: Dialect, payload: string, detail: string): number {
  const size = payload === '' ? undefined : pictureSize(payload);
  return dialectOf(dialect).pictureTokens(size, detail);
}

// The number of first characters by which svc finds a payload in the bytes. Two pictures of an item may begin alike, so
// each search starts after the payload that was found before.
const HEAD_CHARS = 48;
const QUOTE = '"';

/**
 * Finds a payload in the bytes from `from` on, by its first HEAD_CHARS characters. Undefined if these are not there, or
 * are written with other escapes than `\/`, or if the payload is shorter.
 */
function findPayload(
  bytes: Buffer,
  payload: string,
  from: number,
): { readonly start: number; readonly end: number } | undefined {
  if (payload.length < HEAD_CHARS) return undefined;
  const head = payload.slice(0, HEAD_CHARS);
  const plain = bytes.indexOf(head, from, 'latin1');
  // Some clients escape each slash, so search for that form too.
  const start = plain === -1 ? bytes.indexOf(head.replaceAll('/', String.raw`\/`), from) : plain;
  const end = start === -1 ? -1 : bytes.indexOf(QUOTE, start);
  return end === -1 ? undefined : { start, end };
}

/** Bytes that are parsed in one step. JSON.parse takes at most 10 ms for them, whatever they contain. */
const WHOLE_BYTES_MAX = 1 << 16;

/** Parses `bytes` as one object, with the result of JSON.parse; undefined for anything else. */
function* parseSteps(bytes: Buffer): Steps<Fields | undefined> {
  if (bytes.length <= WHOLE_BYTES_MAX) {
    const value = parseSpan(bytes, { start: 0, end: bytes.length });
    return isRecord(value) ? value : undefined;
  }
  const pace = new Pace();
  const open = skipSpace(bytes, 0);
  const members: [string, unknown][] = [];
  let end = open + 1;
  for (let member = firstMember(bytes, open); member !== undefined;) {
    const key = parseSpan(bytes, member.key);
    end = valueEnd(bytes, member.valueStart);
    const value = end === -1 ? undefined : yield* parseValue(bytes, member.valueStart, end);
    if (value === undefined || typeof key !== 'string') return undefined;
    members.push([key, value]);
    if (pace.isDue(end - member.valueStart)) yield;
    member = nextMember(bytes, end);
  }
  return closes(bytes, end) ? Object.fromEntries(members) : undefined;
}

/** Says whether only the body's closing brace follows after `end`. */
function closes(bytes: Buffer, end: number): boolean {
  const close = skipSpace(bytes, end);
  if (bytes[close] !== 0x7d) return false;
  let at = close + 1;
  while (isSpace(bytes[at])) at += 1;
  return at === bytes.length;
}

/** Parses a value. A long list, such as the tools, is parsed element by element. */
function* parseValue(bytes: Buffer, start: number, end: number): Steps<unknown> {
  if (end - start <= WHOLE_BYTES_MAX || !opensList(bytes, start)) {
    return parseSpan(bytes, { start, end });
  }
  const values: unknown[] = [];
  const pace = new Pace();
  let at = start + 1;
  for (const element of elementsOf(bytes, { start, end })) {
    at = valueEnd(bytes, element);
    const value = at === -1 ? undefined : parseSpan(bytes, { start: element, end: at });
    if (value === undefined) return undefined;
    values.push(value);
    if (pace.isDue(at - element)) yield;
  }
  // After the last element the list must end; otherwise this is no JSON.
  return skipSpace(bytes, at) === end - 1 ? values : undefined;
}

// Bytes that are first compared in one native call. Where a block differs, smaller blocks find the exact byte.
const BLOCK_BYTES = 65_536;

// Length below which a loop is as fast as a native call.
const LOOP_BYTES = 64;

/** Returns how many first bytes two buffers have in common. */
export function commonPrefix(one: Buffer, other: Buffer): number {
  const length = Math.min(one.length, other.length);
  let at = 0;
  let block = BLOCK_BYTES;
  while (at < length) {
    const end = Math.min(length, at + block);
    if (one.compare(other, at, end, at, end) === 0) {
      at = end;
    } else if (end - at > LOOP_BYTES) {
      block = (end - at) >> 2;
    } else {
      while (one[at] === other[at]) at += 1;
      return at;
    }
  }
  return length;
}
