/** Finds the lines of a text. The `\n` at the end of a line belongs to that line. */

/** Counts the lines of a text; a last line without a line end counts too. */
export function countLines(text: string): number {
  let lines = 0;
  for (let at = 0; at < text.length; at = lineStart(text, at, 1)) lines += 1;
  return lines;
}

/** Returns where the line begins that is `lines` below the one at `start`; the end of the text if there is none. */
export function lineStart(text: string, start: number, lines: number): number {
  let at = start;
  for (let passed = 0; passed < lines && at < text.length; passed += 1) {
    const end = text.indexOf('\n', at);
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}
