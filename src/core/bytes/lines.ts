/**
 * Cuts a stored text by its lines. A line keeps its end, and nothing is added or normalised, so that
 * parts put together are the text, byte for byte.
 */

/** Both counted from 1, both included. */
export interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** `FROM-TO` as people and models write it; undefined for anything else. */
export function parseLineRange(text: string): LineRange | undefined {
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text) ?? [];
  const range = { from: Number(from ?? 0), to: Number(to ?? 0) };
  return range.from >= 1 && range.to >= range.from ? range : undefined;
}

/** Those lines of the text; '' when it has none of them. */
export function linesOf(text: string, { from, to }: LineRange): string {
  const start = lineStart(text, 0, from - 1);
  return text.slice(start, lineStart(text, start, to - from + 1));
}

/** Lines in a text: what follows the last line end counts when it is not empty. */
export function countLines(text: string): number {
  let lines = 0;
  for (let at = 0; at < text.length; at = lineStart(text, at, 1)) lines += 1;
  return lines;
}

export interface Beginning {
  readonly text: string;
  /** The lines that are there from their first character to their last. */
  readonly wholeLines: number;
}

/**
 * As many whole lines as `charsMax` characters hold. A first line that is longer is cut, between
 * characters and never inside one.
 */
export function beginningOf(text: string, charsMax: number): Beginning {
  if (text.length <= charsMax) return { text, wholeLines: countLines(text) };
  const lastEnd = text.lastIndexOf('\n', charsMax - 1);
  if (lastEnd !== -1) {
    const lines = text.slice(0, lastEnd + 1);
    return { text: lines, wholeLines: countLines(lines) };
  }
  const splitsPair = /[\uD800-\uDBFF]/.test(text.charAt(charsMax - 1));
  return { text: text.slice(0, splitsPair ? charsMax - 1 : charsMax), wholeLines: 0 };
}

/** Where the line begins that comes `lines` after the one at `start`; the text's end if there is none. */
function lineStart(text: string, start: number, lines: number): number {
  let at = start;
  for (let passed = 0; passed < lines && at < text.length; passed += 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}
