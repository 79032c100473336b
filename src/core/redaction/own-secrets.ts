/**
 * Masks the secrets with which svc itself is configured: provider keys, the service key, the local token. Each is
 * masked by its value, whatever the value looks like, and also in base64, as a login is sent. A very short value is not
 * masked.
 * The whole process shares one set of secrets. With another set the same text would be masked in another way and have
 * another digest. The set only grows, up to SECRETS_MAX: a replaced key is still a secret.
 */

import type { Stretch } from './secret-rule.ts';

/** Least length of a masked value that has only letters: a shorter one, such as "ollama", may be no key. */
const ANY_CHARS_MIN = 8;
/** Least length of any other masked value. */
const MIXED_CHARS_MIN = 4;
/** Bound on secrets. A configuration has few, but a process may reload changed ones for months. */
const SECRETS_MAX = 256;
/** Least length of a base64 form: a shorter one may occur in any word. */
const BASE64_CHARS_MIN = 8;

const known = new Set<string>();
let needles: readonly string[] = [];

/**
 * Adds values that are masked in every text from now on. Values that are too short, and values beyond SECRETS_MAX, are
 * not added.
 */
export function rememberOwnSecrets(secrets: readonly string[]): void {
  const fresh = secrets.filter((secret) => isMaskable(secret) && !known.has(secret));
  if (fresh.length === 0) return;
  for (const secret of fresh) if (known.size < SECRETS_MAX) known.add(secret);
  needles = [...new Set([...known].flatMap(formsOf))];
}

/** Returns the values, so that another thread can mask them too. */
export function ownSecrets(): readonly string[] {
  return [...known];
}

/** Forgets all values. Only tests call this: one process runs several of their files. */
export function forgetOwnSecrets(): void {
  known.clear();
  needles = [];
}

/** Finds svc's own secrets in a text whose escapes are decoded. */
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

/**
 * Returns a secret and its forms in the base64 of a longer text: one for each place in a group of three bytes at which
 * the secret may begin. Each form has two spellings, in base64 and in base64url. Forms of fewer than BASE64_CHARS_MIN
 * characters are left out.
 */
function formsOf(secret: string): readonly string[] {
  const unescaped = decodeEscapes(secret).view;
  const inBase64 = [0, 1, 2].map((offset) => insideBase64(secret, offset));
  const long = inBase64.filter((form) => form.length >= BASE64_CHARS_MIN);
  return [
    unescaped,
    ...long,
    ...long.map((form) => form.replaceAll('+', '-').replaceAll('/', '_')),
  ];
}

/** Returns the base64 characters that depend only on the secret. `offset`: the number of bytes before the secret. */
function insideBase64(secret: string, offset: number): string {
  const bytes = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)]);
  const whole = bytes.toString('base64').replace(/=+$/, '');
  const first = Math.ceil((offset * 8) / 6);
  const last = Math.floor((bytes.length * 8) / 6);
  return whole.slice(first, last);
}

/**
 * A text with its escapes decoded, so that one set of rules reads JSON in JSON, source literals, query strings and
 * HTML: `{\\\"password\\\": \\\"…\\\"}` reads like `{"password": "…"}`. The decoded text (`view`) is only searched;
 * `toText` maps an index of `view` to the original text.
 * Every run of backslashes counts as one escape, and `%2522` as `%22`, so any depth is decoded in one pass and the
 * work stays linear. A backslash at the end of a line continues the line, as in a shell.
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
  // Index `viewStarts[n] + k` of the view is index `textStarts[n] + k` of the text, up to the next start.
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

/** Returns the character that an escape encodes; undefined for an escape that is left as written. */
function decoded(escape: string): string | undefined {
  if (escape.includes('\n')) return ' ';
  if (escape.startsWith('&')) return BY_NAME[escape.slice(1, -1)];
  if (escape.startsWith('\\') && !/[ux]..(?:..)?$/.test(escape)) return byLetter(escape.slice(-1));
  const code = Number.parseInt(escape.slice(-2), 16);
  if (code === 0x0a || code === 0x0d) return '\n';
  const isPrintable = code >= 0x20 && code < 0x7f;
  // Brackets end a secret for the rules, so an encoded bracket is not decoded.
  return isPrintable && !/[[\]<>{}\\]/.test(String.fromCharCode(code))
    ? String.fromCharCode(code)
    : undefined;
}

function byLetter(letter: string): string {
  if (letter === 'n' || letter === 'r') return '\n';
  return letter === 't' ? '\t' : letter;
}
