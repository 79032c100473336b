import { STOP_WORDS } from './terms.ts';

/**
 * An upper estimate of the tokens of a short text, for a block that must stay within a limit. An
 * estimate that is right on average would be over the limit half of the time. It cuts a text into
 * the pieces that o200k_base begins with, each of which is one token or a few, and puts a price on
 * each kind. Far too slow for a prompt of megabytes; tokens.ts reads those.
 */

/**
 * Much like o200k_base's own pattern: a word takes one character in front of it along, and is cut before
 * a capital; digits go in threes.
 */
const PIECE =
  /[^\r\n\p{L}\p{N}]?(?:\p{Lu}*[\p{Ll}\p{Lo}\p{Lm}\p{M}]+|\p{Lu}+)(?:'\p{Ll}{1,2}(?!\p{L}))?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;

/**
 * Tokens, fitted to 10,000 blocks so that hardly one is larger than its estimate. The blocks are
 * made of conversations, dialogues in six languages, agent sessions with their tool output, and
 * names in 22 languages.
 */
const PRICE = {
  /** A word of English behind a blank, by its letters: up to 5, to 9, to 11, to 13; longer ones a letter. */
  english: [0.99, 1.16, 1.9, 2.37],
  englishLetter: 0.2,
  capital: 0.18,
  furtherCapital: 0.6,
  /** For other languages: a word at least, or a letter. */
  word: 1.05,
  letter: 0.34,
  /** Behind a sign, as in paths and identifiers: at least. */
  glued: 1.55,
  accent: 0.34,
  cyrillic: 0.46,
  han: 1.04,
  kana: 0.9,
  hangul: 1,
  /** Greek, Arabic, Hebrew, Thai and the scripts of India and Georgia. */
  known: 0.64,
  /** Scripts of which the tokenizer knows no words. */
  rare: 2.9,
  /** Signs after the first of a row. */
  moreSigns: 0.6,
  /** Quotation marks and dashes of print, and the signs of Chinese and Japanese. */
  printed: 1.1,
  symbol: 1.8,
  emoji: 2.8,
};

/** In English prose nearly every second word is one. */
const STOP_SHARE_MIN = 0.2;

/** Lines may be added up: o200k_base never joins a line's end with the letter or sign that follows it. */
export function tokensAtMost(text: string): number {
  const pieces = text.match(PIECE) ?? [];
  const isEnglish = isEnglishText(pieces);
  let sum = 0;
  for (const piece of pieces) sum += priceOf(piece, isEnglish);
  return sum;
}

function isEnglishText(pieces: readonly string[]): boolean {
  let words = 0;
  let stops = 0;
  for (const piece of pieces) {
    const from = lettersFrom(piece);
    if (from === -1) continue;
    words += 1;
    if (STOP_WORDS.has(piece.slice(from).toLowerCase())) stops += 1;
  }
  return stops >= STOP_SHARE_MIN * words;
}

function priceOf(piece: string, isEnglish: boolean): number {
  if (NOT_ASCII.test(piece)) return priceOfForeign(piece);
  const from = lettersFrom(piece);
  if (from === -1) return priceOfSigns(piece);
  const letters = piece.length - from;
  const isSpaced = from === 1 && piece.startsWith(' ');
  const price = isSpaced ? priceOfWord(letters, isEnglish) : priceOfGlued(letters);
  const capitals = capitalsOf(piece);
  return capitals === 0 ? price : price + PRICE.capital + (capitals - 1) * PRICE.furtherCapital;
}

const NOT_ASCII = /[\u0080-\uffff]/;

/** Where the letters of a word begin: behind the character that it takes along; -1 where there are none. */
function lettersFrom(piece: string): number {
  if (isAsciiLetter(piece.charCodeAt(0))) return 0;
  return isAsciiLetter(piece.charCodeAt(1)) ? 1 : -1;
}

function isAsciiLetter(code: number): boolean {
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x7a;
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
  for (const character of piece) sum += priceOfCharacter(character);
  return Math.max(PRICE.word, sum);
}

function priceOfCharacter(character: string): number {
  const code = character.codePointAt(0) ?? 0;
  if (code > 0xffff) return PRICE.emoji;
  if (code < 0x80) return isAsciiLetter(code) ? PRICE.letter : code === 0x20 ? 0 : PRICE.moreSigns;
  const price = SCRIPTS.find(([script]) => script.test(character))?.[1];
  return price ?? (/[\p{L}\p{M}]/u.test(character) ? PRICE.rare : PRICE.symbol);
}

const SCRIPTS: readonly (readonly [RegExp, number])[] = [
  [/\p{sc=Latin}/u, PRICE.letter + PRICE.accent],
  [/\p{sc=Cyrillic}/u, PRICE.cyrillic],
  [/\p{sc=Han}/u, PRICE.han],
  [/[\p{sc=Hiragana}\p{sc=Katakana}\u30fc]/u, PRICE.kana],
  [/\p{sc=Hangul}/u, PRICE.hangul],
  [/[\u2010-\u2027\u3000-\u303f\uff00-\uff65]/, PRICE.printed],
  [
    /[\p{sc=Greek}\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Thai}\p{sc=Devanagari}\p{sc=Bengali}\p{sc=Tamil}\p{sc=Georgian}\p{sc=Inherited}]/u,
    PRICE.known,
  ],
];

function priceOfSigns(piece: string): number {
  const signs = piece.trim();
  if (signs === '' || DIGITS.test(signs)) return 1;
  return 1 + (signs.length - 1) * PRICE.moreSigns;
}

const DIGITS = /^\d+$/;
