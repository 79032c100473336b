/**
 * Estimates how many tokens a text has, from its bytes alone.
 * A real tokenizer reads 2 MB a second and weighs megabytes. This is a finite automaton that reads each byte once.
 * It serves for budgets, never for bills. A text has nearly the same estimate inside a JSON string: an escape counts as
 * its decoded character, because the provider tokenizes that. The exception is a \u escape: it has the same price for
 * every character.
 */
import { Buffer } from 'node:buffer';
import { STEP_BYTES, type Steps } from './steps.ts';

/** Average bytes of a token in English prose and JSON, for bodies that svc does not read. */
export const BYTES_A_TOKEN = 4;

/**
 * The price in tokens of each counted byte. The number in a name is a position: `word10` is paid at the tenth letter
 * of a run. After the last counted position, every later byte pays that position's price again; digits are counted in
 * groups of three instead.
 * Fitted to o200k_base by non-negative least squares on the relative error of 4 kB samples, raw and inside JSON
 * strings: 1,681 from real agent sessions, 900 of code, prose, logs, JSON, numbers and ids. Positions with a price
 * of zero are left out. For all samples of a class together the error is at most 10 %, and 4 % for the sessions. For a
 * single sample it is at most 5 % in half of the cases, and at most 18 % (minified code: 29 %) in nineteen of twenty.
 */
const WEIGHTS = {
  // Letters that begin a run of letters and digits, a first capital included. Up to nine letters are usually one token,
  // which includes the space before the word.
  word1: 0.9275,
  word10: 1.5815,
  // Positions beyond any real word: two or three letters per token. Not fitted, because there are too few samples.
  word17: 0.4,
  more17: 0.4,
  capitals9: 0.4,
  // Letters further on in a run of letters and digits, such as `File` in readFile, or most letters of base64 and hex.
  more1: 1.1552,
  // Up to three digits are one token. After a single space they cost more, because the space is a token of its own.
  digits1: 1.1265,
  digitsAfterSpace: 2.2301,
  // A run of two spaces or more. A single space is free, because the word that follows includes it.
  spaces2: 1.4541,
  lineEnds1: 0.1347,
  // Other ASCII characters in a row.
  signs1: 0.8403,
  signs3: 0.285,
  signs17: 0.1842,
  // Characters beyond ASCII, per character: from an earlier fit on 100 kB of text in each script.
  twoBytes: 0.2814,
  threeBytes: 0.851,
  han: 0.7816,
  kana: 0.747,
  hangul: 0.7595,
  fourBytes: 1.702,
  // A \u escape of any character. The price is close to that of Han, because most escaped characters are Han.
  hex0: 0.75,
};

type Weight = keyof typeof WEIGHTS;

type WideKind = 'twoBytes' | 'threeBytes' | 'han' | 'kana' | 'hangul' | 'fourBytes';

/**
 * The kinds of bytes. Letters with a meaning after a backslash have kinds of their own. `inner`: a later byte of a
 * character beyond ASCII.
 */
type Kind =
  | WideKind
  | 'small'
  | 'small n'
  | 'small t'
  | 'small u'
  | 'capital'
  | 'digit'
  | 'space'
  | 'lineEnd'
  | 'sign'
  | 'backslash'
  | 'inner';

/**
 * The run that the automaton is in. `word`: letters that begin a run of letters and digits. `more`: letters further
 * on in such a run. `capitals`: capitals after a first one. `wide`: a character beyond ASCII. `hex`: the four digits
 * of a \u escape.
 */
type Row = keyof typeof COUNTED;

interface State {
  readonly row: Row;
  /** Bytes of the run so far, at most as many as COUNTED has for this kind of run. */
  readonly count: number;
  /** True if the run so far is one capital. */
  readonly isCapital?: boolean;
  /** True if the last byte was a backslash, so that the next byte says what it means. */
  readonly isEscaping?: boolean;
  /** The weight that is added when this state is entered. */
  readonly pays?: Weight | undefined;
}

/** For each kind of run, the last counted position. Its price may be zero. */
const COUNTED = {
  word: 17,
  more: 17,
  capitals: 9,
  digits: 3,
  spaces: 3,
  lineEnds: 2,
  signs: 17,
  wide: 1,
  hex: 4,
} as const;

const START: State = { row: 'lineEnds', count: 2 };

function step(state: State, kind: Kind): State {
  const { row, count } = state;
  if (state.isEscaping === true) return afterBackslash({ row, count }, kind);
  if (row === 'hex' && count < COUNTED.hex) return enter(row, count + 1);
  if (isWeight(kind)) return { row: 'wide', count: 1, pays: kind };
  switch (kind) {
    case 'small':
    case 'small n':
    case 'small t':
    case 'small u':
      return afterLetter(state);
    case 'capital':
      return afterCapital(state);
    case 'digit':
      return afterDigit(state);
    case 'space':
      return longer('spaces', state);
    case 'lineEnd':
      return longer('lineEnds', state);
    case 'sign':
      return longer('signs', state);
    case 'backslash':
      return { row, count, isEscaping: true };
    case 'inner':
      return enter('wide', 1);
  }
}

function afterBackslash(state: State, kind: Kind): State {
  if (kind === 'small n') return longer('lineEnds', state);
  if (kind === 'small t') return longer('spaces', state);
  return kind === 'small u' ? enter('hex', 0) : longer('signs', state);
}

function afterLetter(state: State): State {
  if (state.row === 'more') return longer('more', state);
  return continuesRow(state.row) ? enter('more', 1) : longer('word', state);
}

function afterCapital(state: State): State {
  if (state.row === 'capitals' || state.isCapital === true) return longer('capitals', state);
  const isInside = state.row === 'word' || state.row === 'more' || continuesRow(state.row);
  return { ...enter(isInside ? 'more' : 'word', 1), isCapital: true };
}

/** Says whether a letter after this run continues it, instead of beginning a word. */
function continuesRow(row: Row): boolean {
  return row === 'digits' || row === 'capitals' || row === 'wide';
}

function afterDigit(state: State): State {
  if (state.row === 'spaces' && state.count === 1) {
    return { row: 'digits', count: 1, pays: 'digitsAfterSpace' };
  }
  return state.count === COUNTED.digits ? enter('digits', 1) : longer('digits', state);
}

/** Returns the state after one more byte of `row`, or after its first byte. */
function longer(row: Row, { row: before, count }: State): State {
  return enter(row, before === row ? Math.min(count + 1, COUNTED[row]) : 1);
}

function enter(row: Row, count: number): State {
  const weight = `${row}${count}`;
  return isWeight(weight) ? { row, count, pays: weight } : { row, count };
}

function isWeight(name: string): name is Weight {
  return name in WEIGHTS;
}

function kindOf(byte: number): Kind {
  if (byte >= 0x80) return wideKindOf(byte);
  const character = String.fromCodePoint(byte);
  if (character === 'n' || character === 'r') return 'small n';
  if (character === 't') return 'small t';
  if (character === 'u') return 'small u';
  if (/[a-z]/.test(character)) return 'small';
  if (/[A-Z]/.test(character)) return 'capital';
  if (/[0-9]/.test(character)) return 'digit';
  if (/[ \t]/.test(character)) return 'space';
  if (/[\n\r]/.test(character)) return 'lineEnd';
  return character === '\\' ? 'backslash' : 'sign';
}

/** Returns the kind of a character beyond ASCII by the first byte of its UTF-8 form. */
function wideKindOf(byte: number): Kind {
  if (byte < 0xc0) return 'inner';
  if (byte < 0xe0) return 'twoBytes';
  if (byte >= 0xf0) return 'fourBytes';
  if (byte === 0xe3) return 'kana';
  if (byte >= 0xe4 && byte <= 0xe9) return 'han';
  return byte >= 0xea && byte <= 0xed ? 'hangul' : 'threeBytes';
}

/** The automaton as tables: `next` has 256 cells per state, one for each byte. */
interface Tables {
  /** For a state and a byte, the index of the first cell of the next state. */
  readonly next: Uint16Array;
  readonly costs: Float64Array;
}

// Cells per state: one for each byte. There are 153 states, so the index of every cell fits in 16 bits.
const CELLS = 256;
const CELLS_LOG2 = 8;

// Builds the tables. It runs in every process and thread that estimates, before V8 has compiled anything. Working by
// kinds of bytes, numbered states and byte ranges takes 2 ms instead of 11.
function buildTables(): Tables {
  const order: Kind[] = [];
  const ranges: Range[] = [];
  for (let byte = 0; byte < CELLS; byte += 1) {
    const kind = kindOf(byte);
    if (!order.includes(kind)) order.push(kind);
    const place = order.indexOf(kind);
    const last = ranges.at(-1);
    if (last?.place === place) last.end = byte + 1;
    else ranges.push({ place, start: byte, end: byte + 1 });
  }
  const states = [START];
  const numbers = new Map([[keyOf(START), 0]]);
  const reached: number[] = [];
  // The loop also visits states that it adds to the list itself.
  for (const state of states) {
    const first = reached.length;
    for (const kind of order) {
      const like = standIn(state, kind);
      if (like !== kind) {
        reached.push(reached[first + order.indexOf(like)] ?? 0);
        continue;
      }
      const to = step(state, kind);
      const key = keyOf(to);
      let number = numbers.get(key);
      if (number === undefined) {
        number = states.push(to) - 1;
        numbers.set(key, number);
      }
      reached.push(number * CELLS);
    }
  }
  const next = new Uint16Array(states.length * CELLS);
  for (let state = 0; state < states.length; state += 1) {
    for (const { place, start, end } of ranges) {
      const to = reached[state * order.length + place] ?? 0;
      next.fill(to, state * CELLS + start, state * CELLS + end);
    }
  }
  const costs = states.map(({ pays }) => (pays === undefined ? 0 : WEIGHTS[pays]));
  return { next, costs: Float64Array.from(costs) };
}

/**
 * Returns the kind that stands for `kind` in this state: the two lead to the same next state, and several kinds may
 * have one stand-in. buildTables() calls step() only for stand-ins, which saves two of three calls.
 */
function standIn({ row, count, isEscaping }: State, kind: Kind): Kind {
  const isLetter = kind === 'small n' || kind === 'small t' || kind === 'small u';
  if (isEscaping === true) return isLetter ? kind : 'sign';
  if (row === 'hex' && count < COUNTED.hex) return 'sign';
  return isLetter ? 'small' : kind;
}

/** Adjacent byte values of one kind. `place`: the index of the kind. */
interface Range {
  readonly place: number;
  readonly start: number;
  end: number;
}

const ROWS = Object.keys(COUNTED);
const PAID = Object.keys(WEIGHTS);

/** Returns a number that is unique for a state: counts are below 32, flags below 4, and indexes of PAID below 64. */
function keyOf({ row, count, isCapital, isEscaping, pays }: State): number {
  const flags = (isCapital === true ? 2 : 0) + (isEscaping === true ? 1 : 0);
  const paid = pays === undefined ? 0 : PAID.indexOf(pays) + 1;
  return ((ROWS.indexOf(row) * 32 + count) * 4 + flags) * 64 + paid;
}

let tables: Tables | undefined;

/** Estimates the tokens of the bytes from `start` to `end`: text, or JSON that holds text. */
export function estimateTokens(bytes: Uint8Array, start = 0, end = bytes.length): number {
  tables ??= buildTables();
  const { next, costs } = tables;
  let row = 0;
  let tokens = 0;
  for (let at = start; at < end; at += 1) {
    row = next[row + (bytes[at] ?? 0)] ?? 0;
    tokens += costs[row >> CELLS_LOG2] ?? 0;
  }
  return Math.ceil(tokens);
}

/** Does the work of estimateTokens in steps. Each cut between two steps changes the sum by a token or two. */
export function* estimateSteps(bytes: Uint8Array, start: number, end: number): Steps<number> {
  let tokens = 0;
  let at = start;
  for (; end - at > STEP_BYTES; at += STEP_BYTES) {
    tokens += estimateTokens(bytes, at, at + STEP_BYTES);
    yield;
  }
  return tokens + estimateTokens(bytes, at, end);
}

export function estimateTextTokens(text: string): number {
  return estimateTokens(Buffer.from(text));
}
