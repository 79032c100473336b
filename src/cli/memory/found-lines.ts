import { runInNewContext } from 'node:vm';

export const PATTERN_CHARS_MAX = 200;
/**
 * Milliseconds for one pattern. A pattern comes from a model, and JavaScript's own expressions backtrack: some take
 * longer than the universe lasts. Only `vm` can end one that is running.
 */
const SEARCH_MS = 1_000;

export interface FoundLines {
  /** Counted from 0, ascending. */
  readonly lines: readonly number[];
  /** The lines that were searched; fewer than there are if the search took too long. */
  readonly looked: number;
  /** 'pattern', the pattern's own characters, or either with capitals and small letters alike. */
  readonly as: 'pattern' | 'text' | 'any case';
}

/** Searches for the pattern; then for its own characters; then for both in any case. */
export function findLines(lines: readonly string[], pattern: string): FoundLines {
  const found = searchLines(lines, pattern, '');
  if (found.lines.length > 0) return { ...found, as: 'pattern' };
  const literal = withText(lines, pattern);
  if (literal.length > 0) return { lines: literal, looked: lines.length, as: 'text' };
  const any = searchLines(lines, pattern, 'i');
  if (any.lines.length > 0) return { ...any, as: 'any case' };
  const small = lines.map((line) => line.toLowerCase());
  return { lines: withText(small, pattern.toLowerCase()), looked: found.looked, as: 'any case' };
}

function withText(lines: readonly string[], text: string): number[] {
  return lines.flatMap((line, at) => (line.includes(text) ? [at] : []));
}

function searchLines(
  lines: readonly string[],
  pattern: string,
  flags: '' | 'i',
): Omit<FoundLines, 'as'> {
  const expression = expressionOf(pattern, flags);
  const found: number[] = [];
  let looked = 0;
  const search = (): void => {
    for (; looked < lines.length; looked += 1) {
      if (expression?.test(lines[looked] ?? '') === true) found.push(looked);
    }
  };
  try {
    runInNewContext('search()', { search }, { timeout: SEARCH_MS });
  } catch {
    // It took too long, or too much of the stack: what was found until then counts.
  }
  return { lines: found, looked };
}

/** Undefined if the pattern is no expression. */
function expressionOf(pattern: string, flags: '' | 'i'): RegExp | undefined {
  if (pattern.length > PATTERN_CHARS_MAX) return undefined;
  // grep writes `\|` for what its successors write `|`.
  const text = pattern.replaceAll(/\\[^]/g, (escaped) => (escaped === '\\|' ? '|' : escaped));
  try {
    return new RegExp(text, flags);
  } catch {
    return undefined;
  }
}
