/**
 * Splits a text into words: letters, combining marks and digits of any script, and "_", with single separators inside.
 * A separator counts only between two word characters: "src/core/recall/terms.ts" is one word, and the dot of "end." is
 * not part of a word. A loop over characters takes a third of the time of the equivalent regular expression.
 */

const WORD = /[\p{L}\p{M}\p{N}_]/u;
const SEPARATORS = "-./:'’";

/** The kind of each UTF-16 unit; 0 if not yet computed. */
const KINDS = new Uint8Array(0x10000);
const IS_WORD = 1;
const IS_SEPARATOR = 2;
const IS_FIRST_HALF = 3;
const IS_OTHER = 4;

/** Returns the words in the order of the text, with repeats. */
export function wordsIn(text: string): string[] {
  const words: string[] = [];
  let end = 0;
  for (;;) {
    const start = wordStart(text, end);
    if (start === text.length) return words;
    end = wordEnd(text, start);
    words.push(text.slice(start, end));
  }
}

/** Returns the index of the first word that begins at or after `from`; the text's length if there is none. */
export function wordStart(text: string, from: number): number {
  let at = from;
  while (at < text.length && wordUnitsAt(text, at) === 0) at += 1;
  return at;
}

export function wordEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    const units = wordUnitsAt(text, at);
    if (units > 0) at += units;
    else if (isSeparatorAt(text, at)) at += 1;
    else return at;
  }
}

function isSeparatorAt(text: string, at: number): boolean {
  return (
    at < text.length &&
    kindOf(text.charCodeAt(at)) === IS_SEPARATOR &&
    wordUnitsAt(text, at + 1) > 0
  );
}

/** Returns the number of UTF-16 units of the character at `at`; 0 if it does not belong to a word. */
function wordUnitsAt(text: string, at: number): number {
  if (at >= text.length) return 0;
  const kind = kindOf(text.charCodeAt(at));
  if (kind === IS_WORD) return 1;
  if (kind !== IS_FIRST_HALF) return 0;
  const point = text.codePointAt(at) ?? 0;
  return point > 0xffff && WORD.test(String.fromCodePoint(point)) ? 2 : 0;
}

function kindOf(unit: number): number {
  const known = KINDS[unit] ?? IS_OTHER;
  if (known !== 0) return known;
  const character = String.fromCharCode(unit);
  let kind = IS_OTHER;
  if (unit >= 0xd800 && unit < 0xdc00) kind = IS_FIRST_HALF;
  else if (SEPARATORS.includes(character)) kind = IS_SEPARATOR;
  else if (WORD.test(character)) kind = IS_WORD;
  KINDS[unit] = kind;
  return kind;
}
