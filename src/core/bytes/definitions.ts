/**
 * Finds the lines of a text that define something: functions, classes, types, and headings of a document. It
 * recognises words instead of parsing a language, and ignores what it does not know. It reads only the first
 * characters of each line, so the time is linear in the text.
 */

export interface Definition {
  readonly name: string;
  /** The number of the line, counted from 1. */
  readonly line: number;
  /** Columns of indentation, not counting a line number that a file tool added. */
  readonly indent: number;
}

/** Bound on the definitions of one text: only generated code has more. */
const DEFINITIONS_MAX = 2_000;
/** Characters of a line that are searched: a definition has its name at the beginning. */
const LINE_CHARS = 160;
/** Bound on the words in front of a name: no declaration has so many modifiers. */
const WORDS_MAX = 8;
/** Characters of a name that are returned. */
const NAME_CHARS = 40;

/**
 * Returns the definitions in the order of the text. It returns headings only if it finds nothing else, because a `#`
 * begins a comment in many languages.
 */
export function definitionsIn(text: string): readonly Definition[] {
  const found: Definition[] = [];
  const headings: Definition[] = [];
  let line = 0;
  for (let at = 0; at < text.length && found.length < DEFINITIONS_MAX;) {
    line += 1;
    const end = text.indexOf('\n', at);
    const stop = end === -1 ? text.length : end;
    const start = startOf(text.slice(at, Math.min(stop, at + LINE_CHARS)));
    const name = start.text === '' ? '' : nameIn(start.text);
    if (name !== '') found.push({ name, line, indent: start.indent });
    else if (headings.length < DEFINITIONS_MAX) {
      const [, title = ''] = /^#{1,4} (\S[^\n]*)/.exec(start.text) ?? [];
      if (title !== '') headings.push({ name: title.slice(0, NAME_CHARS).trim(), line, indent: 0 });
    }
    at = stop + 1;
  }
  return found.length > 0 ? found : headings;
}

/**
 * Returns at most `most` definitions, spread evenly over the text. If more than `most / 2` definitions have the least
 * indentation, as classes have, it chooses only among these.
 */
export function fewDefinitions(text: string, most: number): readonly Definition[] {
  const all = definitionsIn(text);
  const left = Math.min(...all.map(({ indent }) => indent));
  const outer = all.filter(({ indent }) => indent === left);
  const chosen = outer.length * 2 > most ? outer : all;
  if (chosen.length <= most) return chosen;
  return chosen.filter((_, at) => isSpread(at, chosen.length, most));
}

/** Says whether the element with the index `at` is among `most` of `count` elements that are evenly spread. */
function isSpread(at: number, count: number, most: number): boolean {
  return Math.floor((at * most) / count) !== Math.floor(((at - 1) * most) / count);
}

// Matches line numbers that file tools put in front of a line: ` 12→`, `12<tab>`.
const NUMBERED = /^ {0,8}\d{1,7}(?:→|\t)/;

function startOf(line: string): { readonly text: string; readonly indent: number } {
  const rest = line.slice(NUMBERED.exec(line)?.[0].length ?? 0);
  const text = rest.trimStart();
  return { text, indent: rest.length - text.length };
}

/** Words that may come before a word of DEFINERS or VALUES, or before the name of a method. */
const MODIFIERS: ReadonlySet<string> = new Set(
  (
    'export default declare async abstract public private protected internal static final override ' +
    'readonly pub unsafe extern inline virtual sealed partial data open suspend get set CREATE OR ' +
    'REPLACE TEMP UNIQUE'
  ).split(' '),
);

const DEFINERS: ReadonlySet<string> = new Set(
  (
    'function class interface type enum struct trait impl fn func def module namespace protocol ' +
    'object record union macro_rules defmodule defp sub proc TABLE VIEW FUNCTION TRIGGER'
  ).split(' '),
);

const VALUES: ReadonlySet<string> = new Set(['const', 'let', 'var', 'val']);

const WORD = /\s*([\p{L}_$][\p{L}\p{N}_$]*)/uy;
// Matches what may come between a word of DEFINERS and the name: the star of a generator, the `!` of a Rust macro, the
// receiver of a Go method, type parameters in Rust.
const BEFORE_NAME = /\s*(?:\*|!|\([^()]{0,60}\)|<[^<>]{0,60}>)?\s*/y;
const AFTER_NAME =
  /^\s*(?:[({:<=;,[]|$|(?:extends|implements|struct|interface|func|for|where|is|do|as|AS|ON)\b)/;
const AFTER_VALUE = /^[^=]{0,80}=\s*(?:async\s*)?(?:\(|function\b|[\p{L}_$][\p{L}\p{N}_$]*\s*=>)/u;
const METHOD = /^\s*(?:[\p{L}_$][\p{L}\p{N}_$<>[\],?]*\s+)?([\p{L}_$][\p{L}\p{N}_$]*)\s*\(/u;

/** Returns the name that a line defines; '' if it defines none. */
function nameIn(text: string): string {
  let at = 0;
  for (let words = 0; words < WORDS_MAX; words += 1) {
    const word = wordAt(text, at);
    if (word === undefined) return '';
    const behind = WORD.lastIndex;
    if (DEFINERS.has(word)) return definedName(text, behind);
    if (VALUES.has(word)) return valueName(text, behind);
    if (!MODIFIERS.has(word)) return words === 0 ? '' : methodName(text.slice(at));
    at = behind;
    // The word may have a scope in parentheses: pub(crate).
    const [scope = ''] = /^\([a-z]{1,12}\)/.exec(text.slice(at)) ?? [];
    at += scope.length;
  }
  return '';
}

function definedName(text: string, at: number): string {
  BEFORE_NAME.lastIndex = at;
  const skipped = BEFORE_NAME.exec(text)?.[0].length ?? 0;
  const name = wordAt(text, at + skipped);
  if (skipped === 0 || name === undefined) return '';
  return AFTER_NAME.test(text.slice(WORD.lastIndex)) ? name.slice(0, NAME_CHARS) : '';
}

/** Returns the name of a value that begins like a function, as in `const f = (x) => …`, or is in parentheses. */
function valueName(text: string, at: number): string {
  const name = wordAt(text, at);
  if (name === undefined) return '';
  return AFTER_VALUE.test(text.slice(WORD.lastIndex)) ? name.slice(0, NAME_CHARS) : '';
}

function methodName(text: string): string {
  return (METHOD.exec(text)?.[1] ?? '').slice(0, NAME_CHARS);
}

function wordAt(text: string, at: number): string | undefined {
  WORD.lastIndex = at;
  return WORD.exec(text)?.[1];
}
