/**
 * Finds values in a JSON text without building them: it skips strings and counts brackets.
 * Every function ends for any bytes, in linear time, and does not throw. Most return -1 or undefined where they see
 * that the bytes are no JSON, but they miss some faults that JSON.parse finds. For valid JSON the offsets are exact.
 */
import { parseJson } from './json-fields.ts';

/** Bound on nesting in a body. The deepest recorded request of a real client has 12 levels. */
export const DEPTH_MAX = 512;

const QUOTE = 0x22;
const LETTER_U = 0x75;
const ESCAPED_UNIT_BYTES = 6;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

// Bytes of a string that are compared in JavaScript before indexOf is called. A call of indexOf costs as much as
// comparing 24 bytes, and most strings of a body are shorter keys and names. In long texts indexOf is 10 times faster.
const SHORT_STRING_BYTES = 24;

/** A member of an object: the span of its key with quotes, and the offset of its value. */
export interface MemberHead {
  readonly key: Span;
  readonly valueStart: number;
}

/**
 * Bound on the parts of one value: its strings, and its bytes outside strings. 300 tools with their schemas have
 * 120,000 parts. Scanning a value with the most parts takes 5 ms.
 */
const VALUE_PARTS_MAX = 1 << 20;

/** Bound on consecutive white space outside strings, in bytes. `valueEnd` accepts no value with more. */
const SPACE_BYTES_MAX = VALUE_PARTS_MAX;

/**
 * Returns the offset of the first byte at or after `at` that is not JSON white space. Stops after SPACE_BYTES_MAX
 * bytes of white space. The byte at the returned offset is still a space in that case, so the caller finds no value.
 */
export function skipSpace(bytes: Buffer, at: number): number {
  const end = at + SPACE_BYTES_MAX;
  let next = at;
  while (isSpace(bytes[next]) && next < end) next += 1;
  return next;
}

export function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export function opensString(bytes: Buffer, at: number): boolean {
  return bytes[at] === QUOTE;
}

export function opensObject(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_BRACE;
}

export function opensList(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_BRACKET;
}

/** Says whether the value at `at` is no string, object or list, but a number, true, false or null. */
export function isScalar(bytes: Buffer, at: number): boolean {
  return !opensString(bytes, at) && !opensObject(bytes, at) && !opensList(bytes, at);
}

/** Returns the offset after the closing quote of the string whose opening quote is at `open`; -1 if it has none. */
export function stringEnd(bytes: Buffer, open: number): number {
  let at = open + 1;
  for (;;) {
    const nearEnd = Math.min(at + SHORT_STRING_BYTES, bytes.length);
    while (at < nearEnd) {
      const byte = bytes[at];
      if (byte === QUOTE) return at + 1;
      at += byte === BACKSLASH ? 2 : 1;
    }
    const quote = bytes.indexOf(QUOTE, at);
    if (quote === -1) return -1;
    if (!isEscaped(bytes, quote)) return quote + 1;
    at = quote + 1;
  }
}

/**
 * Returns the offset after the bytes of the first `characters` UTF-16 units of the string whose opening quote is at
 * `open`. A position inside a surrogate pair written in UTF-8 counts as the end of the pair.
 */
export function stringPrefixEnd(bytes: Buffer, open: number, characters: number): number {
  let at = open + 1;
  for (let count = 0; count < characters;) {
    const byte = bytes[at] ?? QUOTE;
    if (byte === BACKSLASH) at += bytes[at + 1] === LETTER_U ? ESCAPED_UNIT_BYTES : 2;
    else at += byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    count += byte >= 0xf0 ? 2 : 1;
  }
  return at;
}

/** Says whether an odd number of backslashes precedes the quote, so that the quote does not end the string. */
function isEscaped(bytes: Buffer, quote: number): boolean {
  let at = quote - 1;
  while (bytes[at] === BACKSLASH) at -= 1;
  return (quote - at) % 2 === 0;
}

interface ValueLimits {
  readonly levels?: number;
  readonly parts?: number;
}

const NO_OTHER_LIMITS: ValueLimits = {};

/**
 * Returns the offset after the value at `start`. Returns -1 if no value begins there, or if the value has no end, nests
 * deeper than `levels`, or has more than `parts` strings and bytes outside strings.
 */
export function valueEnd(bytes: Buffer, start: number, limits = NO_OTHER_LIMITS): number {
  const { levels = DEPTH_MAX, parts = VALUE_PARTS_MAX } = limits;
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return scalarEnd(bytes, start);
  let depth = 0;
  let at = start;
  for (let part = 0; at < bytes.length && part < parts; part += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
      if (at === -1) return -1;
      continue;
    }
    at += 1;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) depth -= 1;
    if (depth === 0) return at;
    if (depth > levels) return -1;
  }
  return -1;
}

function scalarEnd(bytes: Buffer, start: number): number {
  const max = Math.min(bytes.length, start + VALUE_PARTS_MAX);
  let at = start;
  while (at < max && !endsScalar(bytes[at])) at += 1;
  return at === start || (at === max && max < bytes.length) ? -1 : at;
}

function endsScalar(byte: number | undefined): boolean {
  if (byte === COMMA || byte === COLON || byte === QUOTE || isSpace(byte)) return true;
  if (byte === OPEN_BRACE || byte === CLOSE_BRACE) return true;
  return byte === OPEN_BRACKET || byte === CLOSE_BRACKET;
}

/** Returns the first member of the object whose brace is at `open`; undefined if it has none. */
export function firstMember(bytes: Buffer, open: number): MemberHead | undefined {
  return readHead(bytes, skipSpace(bytes, open + 1));
}

/** Returns the member after the value that ended at `end`; undefined if no comma and key follow. */
export function nextMember(bytes: Buffer, end: number): MemberHead | undefined {
  const comma = skipSpace(bytes, end);
  return bytes[comma] === COMMA ? readHead(bytes, skipSpace(bytes, comma + 1)) : undefined;
}

function readHead(bytes: Buffer, start: number): MemberHead | undefined {
  const end = opensString(bytes, start) ? stringEnd(bytes, start) : -1;
  if (end === -1) return undefined;
  const colon = skipSpace(bytes, end);
  if (bytes[colon] !== COLON) return undefined;
  return { key: { start, end }, valueStart: skipSpace(bytes, colon + 1) };
}

/** Says whether the key equals `name` (ASCII), even if it is written with escapes. */
export function keyIs(bytes: Buffer, key: Span, name: string): boolean {
  const length = key.end - key.start - 2;
  if (length < name.length) return false;
  if (length > name.length) return hasEscape(bytes, key) && parseSpan(bytes, key) === name;
  for (let at = 0; at < length; at += 1) {
    if (bytes[key.start + 1 + at] !== name.charCodeAt(at)) return false;
  }
  return true;
}

// Compares byte by byte, because a key is so short that a call of the native indexOf costs more.
function hasEscape(bytes: Buffer, { start, end }: Span): boolean {
  for (let at = start; at < end; at += 1) if (bytes[at] === BACKSLASH) return true;
  return false;
}

/** Returns the parsed value of a span; undefined if it is not JSON. */
export function parseSpan(bytes: Buffer, { start, end }: Span): unknown {
  return parseJson(bytes.toString('utf8', start, end));
}

/** Returns where a list's first element begins; -1 for an empty list. `open` is the offset of its bracket. */
export function firstElement(bytes: Buffer, open: number): number {
  const start = skipSpace(bytes, open + 1);
  return bytes[start] === CLOSE_BRACKET ? -1 : start;
}

/** Returns where a list's next element begins; -1 if no comma follows. `end`: the offset after the previous element. */
export function nextElement(bytes: Buffer, end: number): number {
  const comma = skipSpace(bytes, end);
  return bytes[comma] === COMMA ? skipSpace(bytes, comma + 1) : -1;
}

/** Returns the offset after the bracket of a list whose last element ended at `end`, or -1. */
export function listEnd(bytes: Buffer, end: number): number {
  const close = skipSpace(bytes, end);
  return bytes[close] === CLOSE_BRACKET ? close + 1 : -1;
}

// Limits of a top-level member's value: the body's own object is the first level of nesting.
const MEMBER_LIMITS: ValueLimits = { levels: DEPTH_MAX - 1 };

/** Returns where the value of the body's top-level member `key` begins; -1 if there is none. */
export function findMember(bytes: Buffer, key: string): number {
  const open = skipSpace(bytes, 0);
  let member = opensObject(bytes, open) ? firstMember(bytes, open) : undefined;
  while (member !== undefined) {
    if (keyIs(bytes, member.key, key)) return member.valueStart;
    const end = valueEnd(bytes, member.valueStart, MEMBER_LIMITS);
    member = end === -1 ? undefined : nextMember(bytes, end);
  }
  return -1;
}

/**
 * Says whether the body's object closes without a second member `key` after the value that ended at `end`. With two
 * such members, the provider may use another one than svc.
 */
export function endsWithout(bytes: Buffer, end: number, key: string): boolean {
  let at = end;
  let member = nextMember(bytes, at);
  while (member !== undefined) {
    if (keyIs(bytes, member.key, key)) return false;
    at = valueEnd(bytes, member.valueStart, MEMBER_LIMITS);
    if (at === -1) return false;
    member = nextMember(bytes, at);
  }
  return bytes[skipSpace(bytes, at)] === CLOSE_BRACE;
}

/**
 * Returns the span of member `name` of the object at `open`, which must be valid JSON. If members repeat, the last one
 * counts, as in JSON.parse.
 */
export function memberValue(bytes: Buffer, open: number, name: string): Span | undefined {
  let found: Span | undefined;
  let member = firstMember(bytes, open);
  while (member !== undefined) {
    const value = { start: member.valueStart, end: valueEnd(bytes, member.valueStart) };
    if (keyIs(bytes, member.key, name)) found = value;
    member = nextMember(bytes, value.end);
  }
  return found;
}

/** Returns where the elements of a list begin. If the list is not valid JSON, it may return only the first ones. */
export function elementsOf(bytes: Buffer, list: Span): number[] {
  const starts: number[] = [];
  let start = firstElement(bytes, list.start);
  while (start !== -1) {
    starts.push(start);
    start = nextElement(bytes, valueEnd(bytes, start));
  }
  return starts;
}

/** Half-open range of byte offsets in the decoded body: bytes.subarray(start, end) is the value. */
export interface Span {
  readonly start: number;
  readonly end: number;
}
