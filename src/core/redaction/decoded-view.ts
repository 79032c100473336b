/**
 * A text without its escapes, so that one set of rules reads JSON in JSON, source literals, query
 * strings and HTML: `{\\\"password\\\": \\\"…\\\"}` reads like `{"password": "…"}`. The view serves
 * for finding only; `toText` maps a place of the view to the text.
 *
 * Every run of backslashes counts as one escape, and `%2522` as `%22`: so any depth is undone in one
 * pass, and the work stays linear. A backslash at the end of a line continues it, as in a shell.
 */
export interface DecodedView {
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
