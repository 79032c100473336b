import { STOP_WORDS } from './terms.ts';

/**
 * Estimates an upper bound of the tokens of a short text, so that a block stays within its token limit. With an average
 * estimate half of the full blocks would exceed the limit. The tokenizer o200k_base first cuts a text into pieces; here
 * each kind of piece has a price in tokens. Too slow for prompts of megabytes; tokens.ts estimates those.
 */

/**
 * Matches a piece, as o200k_base's own pattern does: a word includes one character in front of it, a capital after a
 * small letter begins a new word, and a group of digits has at most three.
 */
const PIECE =
  /[^\r\n\p{L}\p{N}]?(?:\p{Lu}*[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{Lu}+)(?:'\p{Ll}{1,2}(?!\p{L}))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;

/**
 * Prices in tokens, fitted to 10,000 blocks so that hardly any block exceeds its estimate. The blocks come from
 * conversations, dialogues in six languages, agent sessions with their tool output, and names in 22 languages.
 */
const PRICE = {
  /**
   * Prices of an English word after a space, with up to 5, 9, 11 and 13 letters. In a longer word each letter costs
   * `englishLetter`.
   */
  english: [0.99, 1.16, 1.9, 2.37],
  englishLetter: 0.2,
  /**
   * For a string that looks like no word, such as random letters: the base price, the price of each letter, and the
   * extra price if no space precedes it.
   */
  odd: 0.7,
  oddLetter: 0.55,
  oddGlued: 0.25,
  /** The extra price of a word's first capital letter, and of each further one. */
  capital: 0.18,
  furtherCapital: 0.6,
  /** In other languages: the least price of a word, and the price of each letter. */
  word: 1.05,
  letter: 0.34,
  /** The least price of a word that no space precedes, as in paths and identifiers. */
  glued: 1.55,
  /** Extra price of an accented Latin letter, and of a second accent. */
  accent: 0.34,
  /** Prices of a character of these scripts. */
  cyrillic: 0.46,
  han: 1.04,
  kana: 0.9,
  hangul: 1,
  /** Price of a letter in Greek, Arabic, Hebrew, Thai, Georgian, Devanagari, Bengali and Tamil. */
  known: 0.64,
  /** Price of each sign after the first in a row. */
  moreSigns: 0.6,
  /** Price of a sign that follows two other signs and differs from the one before it. */
  changedSign: 0.95,
  /** Price of typographic quotation marks and dashes, and of Chinese and Japanese punctuation. */
  printed: 1.1,
  /** Price of Latin-1 signs, such as "§" and "°". */
  symbol: 1.8,
  /** Price of arrows, box drawing and mathematical signs. */
  arrow: 2,
  emoji: 2.9,
  /** Extra price when the script changes within a piece. */
  change: 0.7,
  /** Price of Han and Hangul characters outside the common sets. */
  seldom: 2.9,
};

/** Least share of stop words in English prose; normally nearly every second word is one. */
const STOP_SHARE_MIN = 0.2;
/**
 * Least share of odd words (see oddnessOf) in an odd text. Names and abbreviations are up to a tenth of the words of
 * prose and a fifth of those of code.
 */
const ODD_SHARE_MIN = 0.45;
const ODD_MIN = 3;
/** Length in letters from which a word is long: hardly any real word is, but random strings are. */
const LONG_WORD = 14;
/** Fewest letters of a very odd word: shorter ones are mostly abbreviations, which the tokenizer knows. */
const ODD_WORD = 5;
/** Least number of uncommon letter pairs (see PAIRS) per letter of a very odd word. */
const VERY_ODD = 0.25;

/**
 * Estimates the tokens of a text. The estimates of lines may be added up: o200k_base does not join a line's end with
 * the letter or sign that follows it, except a slash.
 */
export function tokensAtMost(text: string): number {
  const pieces = text.match(PIECE) ?? [];
  const kind = kindOf(pieces);
  let sum = 0;
  for (const piece of pieces) sum += priceOf(piece, kind);
  return sum;
}

interface TextKind {
  readonly isEnglish: boolean;
  /** True if the text has more odd words than names and abbreviations explain. */
  readonly isOdd: boolean;
}

function kindOf(pieces: readonly string[]): TextKind {
  let words = 0;
  let stops = 0;
  let odd = 0;
  for (const piece of pieces) {
    const from = lettersFrom(piece);
    if (from === -1) continue;
    words += 1;
    if (STOP_WORDS.has(piece.slice(from).toLowerCase())) stops += 1;
    if (oddnessOf(piece, from) > 0) odd += 1;
  }
  return {
    isEnglish: stops >= STOP_SHARE_MIN * words,
    isOdd: odd >= ODD_MIN && odd >= ODD_SHARE_MIN * words,
  };
}

function priceOf(piece: string, { isEnglish, isOdd }: TextKind): number {
  if (NOT_ASCII.test(piece)) return priceOfForeign(piece);
  const from = lettersFrom(piece);
  if (from === -1) return priceOfSigns(piece);
  const letters = piece.length - from;
  const isSpaced = from === 1 && piece.startsWith(' ');
  const usual = isSpaced ? priceOfWord(letters, isEnglish) : priceOfGlued(letters);
  const isDear = oddnessOf(piece, from) > (isOdd ? 0 : 1);
  const price = isDear ? Math.max(usual, priceOfOdd(letters, isSpaced)) : usual;
  const capitals = capitalsOf(piece);
  return capitals === 0 ? price : price + PRICE.capital + (capitals - 1) * PRICE.furtherCapital;
}

const NOT_ASCII = /[\u0080-\uffff]/;

/** Returns the index of the first letter of a piece: 0, or 1 after another character; -1 if the piece is no word. */
function lettersFrom(piece: string): number {
  if (isAsciiLetter(piece.charCodeAt(0))) return 0;
  return isAsciiLetter(piece.charCodeAt(1)) ? 1 : -1;
}

function isAsciiLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
}

/** For each letter, the letters that commonly follow it. These are 98.5 % of the letter pairs in English words. */
const PAIRS = new Map(
  (
    'aabcdfghijklmnpqrstuvwxyz baeilorsu cacehiklorstuy dadegilorsuvy eabcdefghijklmnopqrstuvwxyz ' +
    'faefilortu gaeghilnorstuy haeilnortuy iabcdefghjklmnopqrstuvxz jaekou kaeiklnorstu ' +
    'lacdefghiklmopstuvy mabeimopsu nacdefghijklmnostuvyz oabcdefghijklmnoprstuvwxy paehiloprstu qu ' +
    'rabcdefghiklmnoprstuvwyz sacefhiklmnopqstuwy tacehilmorstuwy uabcdefgiklmnoprstuvx vaeior ' +
    'waehinors xaceipt yaceilmnops zaeio'
  )
    .split(' ')
    .map((row): [string, string] => [row.charAt(0), row.slice(1)]),
);
const REPEATED = /([a-z])\1\1/;

/** Rates how odd a word of ASCII letters is: 0 like an English word, 1 like many names, 2 like random letters. */
function oddnessOf(piece: string, from: number): 0 | 1 | 2 {
  const word = piece.slice(from).toLowerCase();
  if (REPEATED.test(word)) return 2;
  let pairs = 0;
  for (let at = 1; at < word.length && isAsciiLetter(word.charCodeAt(at)); at += 1) {
    if (PAIRS.get(word.charAt(at - 1))?.includes(word.charAt(at)) !== true) pairs += 1;
  }
  if (pairs === 0) return 0;
  const isVery =
    word.length >= LONG_WORD || (word.length >= ODD_WORD && pairs >= VERY_ODD * word.length);
  return isVery ? 2 : 1;
}

function priceOfOdd(letters: number, isSpaced: boolean): number {
  return PRICE.odd + letters * PRICE.oddLetter + (isSpaced ? 0 : PRICE.oddGlued);
}

function capitalsOf(piece: string): number {
  let count = 0;
  for (let at = 0; at < piece.length; at += 1) {
    const code = piece.charCodeAt(at);
    if (code >= 0x41 && code <= 0x5a) count += 1;
  }
  return count;
}

function priceOfWord(letters: number, isEnglish: boolean): number {
  if (!isEnglish) return Math.max(PRICE.word, letters * PRICE.letter);
  if (letters >= 14) return letters * PRICE.englishLetter;
  const place = letters <= 5 ? 0 : letters <= 9 ? 1 : letters <= 11 ? 2 : 3;
  return PRICE.english[place] ?? 0;
}

function priceOfGlued(letters: number): number {
  return Math.max(PRICE.glued, letters * PRICE.letter);
}

function priceOfForeign(piece: string): number {
  let sum = 0;
  let script = '';
  for (const character of piece) {
    const { price, kind } = judge(character);
    sum += price;
    if (kind === '') continue;
    // No token spans two scripts, and a single letter of a script is one token.
    if (script !== '' && kind !== script) sum += PRICE.change;
    script = kind;
  }
  return Math.max(PRICE.word, sum);
}

interface Judged {
  readonly price: number;
  /** The script; '' for a sign, which is not a change of script. Kana count as Han, because Japanese mixes both. */
  readonly kind: string;
}

function judge(character: string): Judged {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) {
    if (isAsciiLetter(code)) return { price: PRICE.letter, kind: 'latin' };
    return { price: code === 0x20 ? 0 : PRICE.moreSigns, kind: '' };
  }
  const row = USUAL.find(([from, to]) => code >= from && code <= to);
  if (row !== undefined) {
    const [, , kind, price] = row;
    return { price: isSeldom(character, kind) ? PRICE.seldom : price, kind };
  }
  return { price: bytesOf(code), kind: 'bytes' };
}

/** Returns the price of a character that USUAL does not have: the number of its UTF-8 bytes, each at most one token. */
function bytesOf(code: number): number {
  return code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

const { letter, accent, cyrillic, han, kana, hangul, known, printed, symbol, arrow, emoji } = PRICE;
const wide = letter + accent;

/** Ranges of common characters: the first, the last, their script, and the price of each. */
const USUAL: readonly (readonly [number, number, string, number])[] = [
  [0xa0, 0xbf, '', symbol],
  [0xc0, 0x17f, 'latin', wide],
  [0x1a0, 0x1a1, 'latin', wide],
  [0x1af, 0x1b0, 'latin', wide],
  [0x1ea0, 0x1ef9, 'latin', wide + accent],
  [0x370, 0x3ff, 'greek', known],
  [0x400, 0x45f, 'cyrillic', cyrillic],
  [0x490, 0x491, 'cyrillic', cyrillic],
  [0x5d0, 0x5ea, 'hebrew', known],
  [0x600, 0x64a, 'arabic', known],
  [0x660, 0x6ff, 'arabic', known],
  [0x900, 0x9ff, 'indian', known],
  [0xb80, 0xbff, 'indian', known],
  [0xe00, 0xe7f, 'thai', known],
  [0x10d0, 0x10ff, 'georgian', known],
  // The zero-width joiner of emojis, and the variation selector that makes a character an emoji.
  [0x200d, 0x200d, '', printed],
  [0xfe0f, 0xfe0f, '', printed],
  [0x2010, 0x2027, '', printed],
  [0x2028, 0x27bf, '', arrow],
  [0x3000, 0x303f, '', printed],
  [0x3040, 0x30ff, 'han', kana],
  [0x4e00, 0x9fff, 'han', han],
  [0xac00, 0xd7a3, 'hangul', hangul],
  [0xff00, 0xff0f, '', printed],
  [0xff1a, 0xff20, '', printed],
  [0x1f000, 0x1faff, '', emoji],
];

function priceOfSigns(piece: string): number {
  const signs = piece.trim();
  if (signs === '' || DIGITS.test(signs)) return 1;
  let price = 1;
  for (let at = 1; at < signs.length; at += 1) {
    // Repeated signs and pairs such as `);` are tokens of their own; random signs are not.
    const isKnown = at === 1 || signs[at] === signs[at - 1];
    price += isKnown ? PRICE.moreSigns : PRICE.changedSign;
  }
  return price;
}

/**
 * The lead bytes of common characters in the oldest encodings of Chinese, Japanese and Korean. The tokenizer has tokens
 * for these characters and cuts most others into bytes.
 */
const COMMON_SETS: readonly (readonly [encoding: string, lead: readonly [number, number]])[] = [
  ['gbk', [0xb0, 0xd7]],
  ['big5', [0xa4, 0xc6]],
  ['euc-jp', [0xb0, 0xcf]],
  ['euc-kr', [0xb0, 0xc8]],
];
let common: ReadonlySet<string> | undefined;

function isSeldom(character: string, kind: string): boolean {
  if ((kind !== 'han' || character < '\u4e00') && kind !== 'hangul') return false;
  common ??= commonCharacters();
  return common.size > 0 && !common.has(character);
}

function commonCharacters(): ReadonlySet<string> {
  const found = new Set<string>();
  for (const [encoding, [from, to]] of COMMON_SETS) {
    const decoder = new TextDecoder(encoding);
    for (let lead = from; lead <= to; lead += 1) {
      const bytes = Array.from({ length: 94 }, (_, at) => [lead, 0xa1 + at]).flat();
      for (const character of decoder.decode(Uint8Array.from(bytes))) found.add(character);
    }
  }
  return found;
}

const DIGITS = /^\d+$/;
