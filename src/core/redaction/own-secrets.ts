/**
 * The secrets that svc itself was configured with: provider keys, the service key, the local token.
 * They are masked by value, whatever they look like, also in base64 as a login is sent.
 *
 * One set serves the whole process, because everything that it keeps or sends is masked with it:
 * another set would give a text another digest. It only grows: a replaced key stays a secret.
 */

import type { Stretch } from './secret-rule.ts';

/** Shorter values, and short ones of letters alone ("ollama"), are no keys in a configuration. */
const ANY_CHARS_MIN = 8;
const MIXED_CHARS_MIN = 4;
/** A configuration has a handful; this bounds what a process that reloads for months keeps. */
const SECRETS_MAX = 256;
const BASE64_CHARS_MIN = 8;

const known = new Set<string>();
let needles: readonly string[] = [];

/** From now on these values are masked in every text. */
export function rememberOwnSecrets(secrets: readonly string[]): void {
  const fresh = secrets.filter((secret) => isMaskable(secret) && !known.has(secret));
  if (fresh.length === 0) return;
  for (const secret of fresh) if (known.size < SECRETS_MAX) known.add(secret);
  needles = [...new Set([...known].flatMap(formsOf))];
}

/** The place of one of them in a text without escapes. */
export function findOwnSecrets(view: string): readonly Stretch[] {
  const found: Stretch[] = [];
  for (const needle of needles) {
    for (let at = view.indexOf(needle); at !== -1; at = view.indexOf(needle, at + needle.length)) {
      found.push({ start: at, end: at + needle.length });
    }
  }
  return found;
}

function isMaskable(secret: string): boolean {
  if (secret.length >= ANY_CHARS_MIN) return true;
  return secret.length >= MIXED_CHARS_MIN && !/^[A-Za-z]+$/.test(secret);
}

/** The secret itself, and its base64 forms at any offset in a longer text. */
function formsOf(secret: string): readonly string[] {
  const unescaped = decodeEscapes(secret).view;
  const inBase64 = [0, 1, 2].map((offset) => insideBase64(secret, offset));
  const long = inBase64.filter((form) => form.length >= BASE64_CHARS_MIN);
  return [unescaped, ...long, ...long.map(toBase64Url)];
}

/** The characters of base64 that depend only on the secret when `offset` bytes precede it. */
function insideBase64(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const whole = bytes.toString('base64').replace(/=+$/, '');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor((bytes.length * 8) / 6);
  return whole.slice(first, last);
}

function toBase64Url(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}

/**
 * A text without its escapes, so that one set of rules reads JSON in JSON, source literals, query
 * strings and HTML: `{\\\"password\\\": \\\"…\\\"}` reads like `{"password": "…"}`. The view serves
 * for finding only; `toText` maps a place of the view to the text.
 *
 * Every run of backslashes counts as one escape, and `%2522` as `%22`: so any depth is undone in one
 * pass, and the work stays linear. A backslash at the end of a line continues it, as in a shell.
 */
interface DecodedView {
  readonly view: string;
  readonly toText: (index: number) => number;
}

const ESCAPE =
  /(?<!\\)\\\r?\n[ \t]{0,64}|(?<!\\)\\+(?:["'`/nrt]|u00[0-9A-Fa-f]{2}|x[0-9A-Fa-f]{2})|%(?:25)*[0-9A-Fa-f]{2}|&(?:quot|apos|amp|#34|#39|#x22|#x27);/g;

const BY_NAME: Readonly<Record<string, string>> = {
  quot: '"',
  apos: "'",
  amp: '&',
  '#34': '"',
  '#39': "'",
  '#x22': '"',
  '#x27': "'",
};

export function decodeEscapes(text: string): DecodedView {
  if (!/[\\%&]/.test(text)) return { view: text, toText: (index) => index };
  const parts: string[] = [];
  // From `viewStarts[n]` on, a place of the view is at the same distance from `textStarts[n]`.
  const viewStarts = [0];
  const textStarts = [0];
  let viewLength = 0;
  let textFrom = 0;
  for (const found of text.matchAll(ESCAPE)) {
    const character = decoded(found[0]);
    if (character === undefined) continue;
    parts.push(text.slice(textFrom, found.index), character);
    viewLength += found.index - textFrom + 1;
    textFrom = found.index + found[0].length;
    viewStarts.push(viewLength);
    textStarts.push(textFrom);
  }
  parts.push(text.slice(textFrom));
  return { view: parts.join(''), toText: placeFinder(viewStarts, textStarts) };
}

function placeFinder(
  viewStarts: readonly number[],
  textStarts: readonly number[],
): (index: number) => number {
  return (index) => {
    let low = 0;
    let high = viewStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((viewStarts[middle] ?? 0) <= index) low = middle;
      else high = middle - 1;
    }
    return index - (viewStarts[low] ?? 0) + (textStarts[low] ?? 0);
  };
}

/**
 * The one character that an escape encodes; undefined for an escape that stays as it is written.
 */
function decoded(escape: string): string | undefined {
  if (escape.includes('\n')) return ' ';
  if (escape.startsWith('&')) return BY_NAME[escape.slice(1, -1)];
  if (escape.startsWith('\\') && !/[ux]..(?:..)?$/.test(escape)) return byLetter(escape.slice(-1));
  const code = Number.parseInt(escape.slice(-2), 16);
  if (code === 0x0a || code === 0x0d) return '\n';
  const isPrintable = code >= 0x20 && code < 0x7f;
  // Brackets end a secret for the rules, and a decoded one must not.
  return isPrintable && !/[[\]<>{}\\]/.test(String.fromCharCode(code))
    ? String.fromCharCode(code)
    : undefined;
}

function byLetter(letter: string): string {
  if (letter === 'n' || letter === 'r') return '\n';
  return letter === 't' ? '\t' : letter;
}
