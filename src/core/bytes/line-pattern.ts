/**
 * Finds the lines of a text that a pattern matches, in time that is linear in the text. A pattern
 * comes from a model, so it must not be able to hold the program up: JavaScript's own expressions
 * backtrack, and some take longer than the universe lasts. This is the subset that grep users write:
 * `.` `[a-z]` `\d \w \s \b` `^` `$` `*` `+` `?` `{2,5}` `(a|b)`, matched by following all states at once.
 */

export const PATTERN_CHARS_MAX = 200;
/**
 * States of a pattern: `x{1,40}` is 40 of them. A pattern that needs more is searched as plain
 * text.
 */
const STATES_MAX = 1_000;
const REPEATS_MAX = 100;
/** A step is one state at one character. So many take less than a second. */
const STEPS_MAX = 50_000_000;

export interface FoundLines {
  /** Counted from 0, ascending. */
  readonly lines: readonly number[];
  /** The lines that were looked through; fewer than there are where the search took too long. */
  readonly looked: number;
  /** 'pattern', the pattern's own characters, or either with capitals and small letters alike. */
  readonly as: 'pattern' | 'text' | 'any case';
}

/** Looks for the pattern; then for its own characters; then for both, whatever their case. */
export function findLines(lines: readonly string[], pattern: string): FoundLines {
  const matcher = Matcher.of(pattern, false);
  const found = matcher?.search(lines) ?? { lines: [], looked: lines.length };
  if (found.lines.length > 0) return { ...found, as: 'pattern' };
  const literal = withText(lines, pattern);
  if (literal.length > 0) return { lines: literal, looked: lines.length, as: 'text' };
  const small = lines.map((line) => line.toLowerCase());
  const any = Matcher.of(pattern.toLowerCase(), true)?.search(small);
  if (any !== undefined && any.lines.length > 0) return { ...any, as: 'any case' };
  return { lines: withText(small, pattern.toLowerCase()), looked: found.looked, as: 'any case' };
}

function withText(lines: readonly string[], text: string): number[] {
  return lines.flatMap((line, at) => (line.includes(text) ? [at] : []));
}

type Test = (code: number) => boolean;
type Edge = 'start' | 'end' | 'word' | 'inside';

type Node =
  | { readonly kind: 'one'; readonly test: Test }
  | { readonly kind: 'edge'; readonly edge: Edge }
  | { readonly kind: 'row'; readonly nodes: readonly Node[] }
  | { readonly kind: 'choice'; readonly nodes: readonly Node[] }
  | { readonly kind: 'repeat'; readonly node: Node; readonly min: number; readonly max: number };

interface Place {
  readonly line: string;
  readonly at: number;
}

/** The actions of a state: read a character, check an edge, continue in one or two ways, or match. */
type State =
  | { readonly kind: 'one'; readonly test: Test }
  | { readonly kind: 'edge'; readonly edge: Edge }
  | { readonly kind: 'split'; first: number; second: number }
  | { readonly kind: 'match' };

class Matcher {
  readonly #states: readonly State[];
  readonly #seen: Int32Array;
  #round = 0;

  private constructor(states: readonly State[]) {
    this.#states = states;
    this.#seen = new Int32Array(states.length);
  }

  /** Undefined for what is no such pattern, or needs too many states. */
  static of(pattern: string, isSmall: boolean): Matcher | undefined {
    const node = pattern.length > PATTERN_CHARS_MAX ? undefined : new Parser(pattern).parse();
    if (node === undefined) return undefined;
    const states: State[] = [];
    if (!compile(node, states)) return undefined;
    states.push({ kind: 'match' });
    return new Matcher(isSmall ? states.map(smallState) : states);
  }

  search(lines: readonly string[]): { lines: number[]; looked: number } {
    const found: number[] = [];
    let steps = 0;
    for (const [at, line] of lines.entries()) {
      if (steps > STEPS_MAX) return { lines: found, looked: at };
      steps += (line.length + 1) * this.#states.length;
      if (this.#matches(line)) found.push(at);
    }
    return { lines: found, looked: lines.length };
  }

  #matches(line: string): boolean {
    let waiting: number[] = [];
    for (let at = 0; at <= line.length; at += 1) {
      this.#round += 1;
      const next: number[] = [];
      // A match may begin at every character.
      for (const state of [...waiting, 0]) {
        if (this.#follow(state, { line, at }, next)) return true;
      }
      const code = line.charCodeAt(at);
      waiting = [];
      for (const state of next) {
        const it = this.#states[state];
        if (it?.kind === 'one' && it.test(code)) waiting.push(state + 1);
      }
    }
    return false;
  }

  /** Adds the states that read a character and are reached from this one without reading any. */
  #follow(from: number, { line, at }: Place, into: number[]): boolean {
    const open = [from];
    for (let state = open.pop(); state !== undefined; state = open.pop()) {
      const it = this.#states[state];
      if (it === undefined || this.#seen[state] === this.#round) continue;
      this.#seen[state] = this.#round;
      if (it.kind === 'match') return true;
      if (it.kind === 'one') into.push(state);
      else if (it.kind === 'split') open.push(it.second, it.first);
      else if (isAtEdge(it.edge, line, at)) open.push(state + 1);
    }
    return false;
  }
}

function upper(code: number): number {
  return String.fromCharCode(code).toUpperCase().charCodeAt(0);
}

function smallState(state: State): State {
  if (state.kind !== 'one') return state;
  const { test } = state;
  return { kind: 'one', test: (code) => test(code) || test(upper(code)) };
}

function isAtEdge(edge: Edge, line: string, at: number): boolean {
  if (edge === 'start') return at === 0;
  if (edge === 'end') return at === line.length;
  const isWordEdge = isWord(line.charCodeAt(at - 1)) !== isWord(line.charCodeAt(at));
  return isWordEdge === (edge === 'word');
}

/** Writes the states behind those that are there; each falls through to the next. */
function compile(node: Node, states: State[]): boolean {
  if (states.length > STATES_MAX) return false;
  switch (node.kind) {
    case 'one':
    case 'edge':
      states.push(node);
      return true;
    case 'row':
      return node.nodes.every((part) => compile(part, states));
    case 'choice':
      return compileChoice(node.nodes, states);
    case 'repeat':
      return compileRepeat(node, states);
  }
}

function compileChoice(nodes: readonly Node[], states: State[]): boolean {
  const [first, ...rest] = nodes;
  if (first === undefined) return true;
  if (rest.length === 0) return compile(first, states);
  const split = { kind: 'split' as const, first: states.length + 1, second: 0 };
  states.push(split);
  if (!compile(first, states)) return false;
  const leap = { kind: 'split' as const, first: 0, second: 0 };
  states.push(leap);
  split.second = states.length;
  const isDone = compileChoice(rest, states);
  leap.first = states.length;
  leap.second = states.length;
  return isDone;
}

function compileRepeat({ node, min, max }: Node & { kind: 'repeat' }, states: State[]): boolean {
  for (let at = 0; at < min; at += 1) if (!compile(node, states)) return false;
  if (max === Infinity) {
    const start = states.length;
    const split = { kind: 'split' as const, first: start + 1, second: 0 };
    states.push(split);
    if (!compile(node, states)) return false;
    states.push({ kind: 'split', first: start, second: start });
    split.second = states.length;
    return true;
  }
  for (let at = min; at < max; at += 1) {
    const split = { kind: 'split' as const, first: states.length + 1, second: 0 };
    states.push(split);
    if (!compile(node, states)) return false;
    split.second = states.length;
  }
  return true;
}

/** Reads a pattern; its depth is bounded by its length. */
class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Undefined where a bracket does not close, a repetition has nothing to repeat, and the like. */
  parse(): Node | undefined {
    const node = this.#choice();
    return this.#at === this.#text.length ? node : undefined;
  }

  #choice(): Node | undefined {
    const nodes: Node[] = [];
    for (;;) {
      const row = this.#row();
      if (row === undefined) return undefined;
      nodes.push(row);
      // grep writes `\|` for what its successors write `|`.
      if (!this.#takes('|') && !this.#takes('\\|')) return { kind: 'choice', nodes };
    }
  }

  #row(): Node | undefined {
    const nodes: Node[] = [];
    while (this.#at < this.#text.length) {
      const rest = this.#text.slice(this.#at, this.#at + 2);
      if (rest.startsWith('|') || rest.startsWith(')') || rest === '\\|') break;
      const node = this.#atom();
      const repeated = node === undefined ? undefined : this.#repeated(node);
      if (repeated === undefined) return undefined;
      nodes.push(repeated);
    }
    return { kind: 'row', nodes };
  }

  #repeated(node: Node): Node | undefined {
    const [, sign = '', from, comma, to] =
      /^(?:([*+?])|\{(\d{1,3})(,?)(\d{0,3})\})\??/.exec(this.#text.slice(this.#at)) ?? [];
    if (sign === '' && from === undefined) return node;
    this.#at = this.#text.indexOf(sign === '' ? '}' : sign, this.#at) + 1;
    this.#takes('?');
    if (sign !== '') {
      const max = sign === '?' ? 1 : Infinity;
      return { kind: 'repeat', node, min: sign === '+' ? 1 : 0, max };
    }
    const min = Number(from);
    const most = comma === '' ? min : to === '' ? Infinity : Number(to);
    const isTooMany = min > REPEATS_MAX || (most !== Infinity && most > REPEATS_MAX);
    return isTooMany || most < min ? undefined : { kind: 'repeat', node, min, max: most };
  }

  #atom(): Node | undefined {
    const char = this.#text[this.#at] ?? '';
    this.#at += 1;
    if (char === '(') return this.#group();
    if (char === '[') return this.#class();
    if (char === '\\') return this.#escape();
    if (char === '*' || char === '+' || char === '?') return undefined;
    if (char === '^') return { kind: 'edge', edge: 'start' };
    if (char === '$') return { kind: 'edge', edge: 'end' };
    if (char === '.') return { kind: 'one', test: isAny };
    return one(char);
  }

  #group(): Node | undefined {
    this.#takes('?:');
    const node = this.#choice();
    return node !== undefined && this.#takes(')') ? node : undefined;
  }

  #escape(): Node | undefined {
    const char = this.#text[this.#at];
    if (char === undefined) return undefined;
    this.#at += 1;
    if (char === 'b') return { kind: 'edge', edge: 'word' };
    if (char === 'B') return { kind: 'edge', edge: 'inside' };
    const test = CLASSES[char];
    return test === undefined ? one(CONTROLS[char] ?? char) : { kind: 'one', test };
  }

  #class(): Node | undefined {
    const isNot = this.#takes('^');
    const tests: Test[] = [];
    for (let isFirst = true; ; isFirst = false) {
      const char = this.#text[this.#at];
      if (char === undefined) return undefined;
      this.#at += 1;
      if (char === ']' && !isFirst) break;
      tests.push(char === '\\' ? this.#classEscape() : this.#range(char));
    }
    const isIn: Test = (code) => tests.some((test) => test(code));
    return { kind: 'one', test: isNot ? (code) => isAny(code) && !isIn(code) : isIn };
  }

  #classEscape(): Test {
    const char = this.#text[this.#at] ?? '\\';
    this.#at += 1;
    return CLASSES[char] ?? is(CONTROLS[char] ?? char);
  }

  #range(from: string): Test {
    const [dash, to] = [this.#text[this.#at], this.#text[this.#at + 1]];
    if (dash !== '-' || to === undefined || to === ']') return is(from);
    this.#at += 2;
    const [low, high] = [from.charCodeAt(0), to.charCodeAt(0)];
    return (code) => code >= low && code <= high;
  }

  #takes(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }
}

function one(char: string): Node {
  return { kind: 'one', test: is(char) };
}

function is(char: string): Test {
  const wanted = char.charCodeAt(0);
  return (code) => code === wanted;
}

/** Behind the last character the code is NaN, which nothing reads. */
const isAny: Test = (code) => code >= 0;

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function isWord(code: number): boolean {
  const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
  return isLetter || isDigit(code) || code === 95;
}

function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || code === 0xa0;
}

const CLASSES: Readonly<Record<string, Test | undefined>> = {
  d: isDigit,
  w: isWord,
  s: isSpace,
  D: (code) => isAny(code) && !isDigit(code),
  W: (code) => isAny(code) && !isWord(code),
  S: (code) => isAny(code) && !isSpace(code),
};

const CONTROLS: Readonly<Record<string, string | undefined>> = { t: '\t', n: '\n', r: '\r' };
