import { definitionsIn } from '../../core/bytes/definitions.ts';
import { countLines, lineStart } from '../../core/shortening/stubs.ts';
import { estimateTextTokens } from '../../core/bytes/tokens.ts';
import { EXCERPT_TOKENS_MAX } from '../../core/memory/reference.ts';
import { runInNewContext } from 'node:vm';

/**
 * Returns the requested part of a stored text, because a model pays for each line of it until its session ends. An
 * excerpt consists of the text's own lines; only a search for a pattern puts line numbers in front of them, and `--`
 * between groups of them. A line that is too long is cut. If the token limit leaves out lines of a range, or matches of
 * a pattern, the excerpt says how to get them.
 */

/** Lines that are shown before and after a match: the default and the maximum. */
const CONTEXT_USUAL = 2;
export const CONTEXT_MAX = 50;
/**
 * Lines that are shown above a definition, for its comment and decorators, and above a word that no line defines. Below
 * such a word ten times as many are shown.
 */
const LINES_ABOVE = 3;
/** Characters that a search shows of a line; minified code has lines of 100 kB. */
const FOUND_LINE_CHARS = 400;

export interface ExcerptRequest {
  /** A range of lines `FROM-TO`, both counted from 1. */
  readonly lines?: string | undefined;
  readonly grep?: string | undefined;
  /** Number of lines to show before and after each match. */
  readonly context?: number | undefined;
  /** The name of a function, class or heading, which is shown whole; or any word, shown with the lines around it. */
  readonly around?: string | undefined;
  /** True: the excerpt may have any number of tokens. */
  readonly all?: boolean;
}

/** How messages name the ways to ask for a part: as flags in a shell, or as fields of a tool. */
export interface PartWords {
  readonly lines: (range: string) => string;
  readonly grep: string;
  readonly around: string;
  readonly all: string;
}

export type Excerpt =
  | { readonly text: string; readonly rest?: string }
  | { readonly problem: string; readonly hint: string; readonly isMisuse?: true };

export function excerptOf(text: string, request: ExcerptRequest, words: PartWords): Excerpt {
  const { lines, grep, around } = request;
  if ([lines, grep, around].filter((part) => part !== undefined).length > 1) {
    const hint = `Ask for one of ${words.lines('FROM-TO')}, ${words.grep}, ${words.around}.`;
    return { problem: 'These parts cannot be asked for together.', hint, isMisuse: true };
  }
  if (grep !== undefined) return foundLines(text, { ...request, grep }, words);
  if (around !== undefined) return aroundSymbol(text, { ...request, around }, words);
  if (lines === undefined)
    return rangeOf(text, { ...request, from: 1, to: countLines(text) }, words);
  const range = parseLineRange(lines);
  const all = countLines(text);
  if (range === undefined) {
    const hint = `For example: ${words.lines('1-200')}`;
    return { problem: 'Lines are FROM-TO, counted from 1.', hint, isMisuse: true };
  }
  if (range.from > all) {
    const problem = `It has ${all} ${all === 1 ? 'line' : 'lines'} and no more.`;
    return { problem, hint: `Try ${words.lines(`1-${all}`)}` };
  }
  return rangeOf(text, { ...request, from: range.from, to: Math.min(range.to, all) }, words);
}

/** Returns the lines of the range, as many as EXCERPT_TOKENS_MAX allows unless `all` is set. */
function rangeOf(
  text: string,
  { from, to, all = false }: LineRange & Pick<ExcerptRequest, 'all'>,
  words: PartWords,
): Excerpt {
  const asked = linesOf(text, { from, to });
  if (all || estimateTextTokens(asked) <= EXCERPT_TOKENS_MAX) return { text: asked };
  const { text: start, wholeLines: lines } = withinTokens(asked, EXCERPT_TOKENS_MAX);
  const size = `${countLines(text)} lines, about ${estimateTextTokens(text)} tokens`;
  const parts = `${words.grep} or ${words.around} for a part, ${words.all} for all of it`;
  const rest =
    lines === 0
      ? `this is the start of line ${from}, which is too long to show. ${words.all} gives all of it.`
      : `lines ${from}-${from + lines - 1} of ${size}. Go on with ${words.lines(`${from + lines}-${to}`)}; ${parts}.`;
  return { text: start, rest: `[svc: ${rest}]` };
}

/** Returns the first lines that fit into `tokensMax`. If the first line does not fit, returns its beginning. */
function withinTokens(text: string, tokensMax: number): Beginning {
  // Search at most 16 characters for each token. Only a text with long runs of white space has more.
  let [low, high] = [0, Math.min(text.length, 16 * tokensMax)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTextTokens(text.slice(0, middle)) <= tokensMax) low = middle;
    else high = middle - 1;
  }
  return beginningOf(text, Math.max(1, low));
}

/** Returns the definition of the name, or the first line with the word and lines around it, within the token limit. */
function aroundSymbol(
  text: string,
  request: ExcerptRequest & { readonly around: string },
  words: PartWords,
): Excerpt {
  const symbol = request.around.trim();
  const all = countLines(text);
  const defined = symbol === '' ? undefined : definitionOf(text, symbol);
  const line = defined?.line ?? lineWith(text, symbol);
  if (line === undefined) {
    return { problem: `No line of it has ${quoted(symbol)}.`, hint: `Try ${words.grep}.` };
  }
  const end = defined === undefined ? line + 10 * LINES_ABOVE : (defined.next ?? all + 1) - 1;
  const range = { from: Math.max(1, line - LINES_ABOVE), to: Math.min(all, Math.max(line, end)) };
  const excerpt = rangeOf(text, { ...request, ...range }, words);
  if ('problem' in excerpt || excerpt.rest !== undefined) return excerpt;
  return { ...excerpt, rest: `[svc: lines ${range.from}-${range.to} of ${all}.]` };
}

function lineWith(text: string, word: string): number | undefined {
  const at = word === '' ? -1 : text.indexOf(word);
  return at === -1 ? undefined : countLines(text.slice(0, at + 1));
}

/** Returns matches in grep's form: `12:` is in front of a matching line, `11-` in front of a line beside one. */
function foundLines(
  text: string,
  request: ExcerptRequest & { readonly grep: string },
  words: PartWords,
): Excerpt {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  const found = findLines(lines, request.grep);
  const late = found.looked < lines.length ? ` in the first ${found.looked} lines` : '';
  if (found.lines.length === 0) {
    const problem = `No line has ${quoted(request.grep)}${late}.`;
    return { problem, hint: `It has ${lines.length} lines: try ${words.lines('1-100')}` };
  }
  const context = Math.min(request.context ?? CONTEXT_USUAL, CONTEXT_MAX);
  const hits = shownHits(lines, found.lines, { context, isAll: request.all === true });
  const as = found.as === 'pattern' ? '' : AS[found.as];
  const counted = `${hits.shown} of ${found.lines.length} found lines${late}, of ${lines.length} lines${as}`;
  const isCut = hits.shown < found.lines.length;
  const next = isCut ? ` A narrower pattern shows the rest; ${words.all} shows all.` : '';
  return { text: hits.text, rest: `[svc: ${counted}.${next}]` };
}

const AS = {
  text: ', with these very characters',
  'any case': ', with capitals and small letters alike',
} as const;

/**
 * Returns the matching lines with the lines around them, as many as EXCERPT_TOKENS_MAX allows unless `isAll` is set. If
 * the first match does not fit with the lines around it, fewer of them are shown. `found`: the indexes of the matching
 * lines. `shown`: how many of these lines the text has.
 */
function shownHits(
  lines: readonly string[],
  found: readonly number[],
  { context, isAll }: { readonly context: number; readonly isAll: boolean },
): { readonly text: string; readonly shown: number } {
  const hits = new Set(found);
  let [text, tokens, shown, last] = ['', 0, 0, -1];
  for (const hit of found) {
    // The lines around an earlier match already include this match.
    if (hit <= last) {
      shown += 1;
      continue;
    }
    let group = groupOf(lines, hits, { hit, last, context });
    let more = estimateTextTokens(group.text);
    const isFirst = !isAll && shown === 0;
    for (let less = isFirst ? context : 0; less > 0 && more > EXCERPT_TOKENS_MAX;) {
      less = Math.floor(less / 2);
      group = groupOf(lines, hits, { hit, last, context: less });
      more = estimateTextTokens(group.text);
    }
    if (!isAll && tokens + more > EXCERPT_TOKENS_MAX) break;
    text += group.text;
    [tokens, shown, last] = [tokens + more, shown + 1, group.to];
  }
  return { text, shown };
}

/** Returns the lines around a match that stand behind the line `last`. `to`: the index of the last one. */
function groupOf(
  lines: readonly string[],
  hits: ReadonlySet<number>,
  { hit, last, context }: { readonly hit: number; readonly last: number; readonly context: number },
): { readonly text: string; readonly to: number } {
  const from = Math.max(last + 1, hit - context);
  const to = Math.min(lines.length - 1, hit + context);
  const gap = last >= 0 && from > last + 1 ? '--\n' : '';
  const found = lines.slice(from, to + 1);
  const text = found.map((line, at) => foundLine(line, from + at, hits.has(from + at))).join('');
  return { text: gap + text, to };
}

function foundLine(line: string, at: number, isHit: boolean): string {
  const shownLine = beginningOf(line, FOUND_LINE_CHARS).text;
  const cut = shownLine.length < line.length ? ' … (cut)' : '';
  return `${at + 1}${isHit ? ':' : '-'}${shownLine}${cut}\n`;
}

function quoted(words: string): string {
  return `"${beginningOf(words, 60).text}"`;
}

/** A range of lines, counted from 1; both ends are included. */
interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** Parses `FROM-TO`; undefined for anything else. */
export function parseLineRange(text: string): LineRange | undefined {
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(text) ?? [];
  const range = { from: Number(from ?? 0), to: Number(to ?? 0) };
  return range.from >= 1 && range.to >= range.from ? range : undefined;
}

/** Returns the lines of the range; '' if the text has none of them. */
export function linesOf(text: string, { from, to }: LineRange): string {
  const start = lineStart(text, 0, from - 1);
  return text.slice(start, lineStart(text, start, to - from + 1));
}

interface Beginning {
  readonly text: string;
  /** The number of complete lines in `text`; 0 if it is the beginning of one line. */
  readonly wholeLines: number;
}

/** Returns the complete lines that fit into `charsMax`, or the beginning of a longer first line. */
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

/**
 * Returns the number of the line that defines the name, and that of the next line with a definition that is not inside
 * the first definition. Undefined if no line defines the name.
 */
export function definitionOf(
  text: string,
  symbol: string,
): { readonly line: number; readonly next: number | undefined } | undefined {
  const name = symbol.slice(Math.max(symbol.lastIndexOf('.'), symbol.lastIndexOf(':')) + 1);
  const all = definitionsIn(text);
  const at = all.findIndex((one) => one.name === symbol || one.name === name);
  const found = all[at];
  if (found === undefined) return undefined;
  const next = all.slice(at + 1).find(({ indent }) => indent <= found.indent);
  return { line: found.line, next: next?.line };
}

export const PATTERN_CHARS_MAX = 200;
/**
 * Deadline of a search, in milliseconds. Models write the patterns, and with some of them JavaScript's engine
 * backtracks practically for ever. Only `vm` can end such a match.
 */
const SEARCH_MS = 1_000;

interface FoundLines {
  /** Numbers of the matching lines, counted from 0, ascending. */
  readonly lines: readonly number[];
  /** The number of lines that were searched. Less than all if the search exceeded its deadline. */
  readonly looked: number;
  /** What matched: the regular expression, its characters as plain text, or one of the two with letter case ignored. */
  readonly as: 'pattern' | 'text' | 'any case';
}

/**
 * Returns the lines that match the pattern. If none does, returns those that contain its characters as plain text, or
 * else those that match either way with letter case ignored.
 */
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
    // The search exceeded its deadline or the stack, so return the matches so far.
  }
  return { lines: found, looked };
}

/** Compiles a pattern; undefined if it is too long or not valid. */
function expressionOf(pattern: string, flags: '' | 'i'): RegExp | undefined {
  if (pattern.length > PATTERN_CHARS_MAX) return undefined;
  // Accept grep's `\|`, which JavaScript writes as `|`.
  const text = pattern.replaceAll(/\\[^]/g, (escaped) => (escaped === '\\|' ? '|' : escaped));
  try {
    return new RegExp(text, flags);
  } catch {
    return undefined;
  }
}
