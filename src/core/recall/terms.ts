import { copied, Known } from './known.ts';
import { stem } from './stemming.ts';
import { WORD_FORMS } from './word-forms.ts';
import { wordEnd, wordsIn, wordStart } from './words.ts';

/**
 * Turns text into terms, in the same way for stored texts and for questions, or nothing would ever match. Terms are
 * lower-case, stemmed words without stop words. Identifiers and paths are kept both in parts and whole, so that
 * `memoryMode`, `memory_mode` and "memory mode" match each other. Scripts without spaces become pairs of characters.
 * The time is linear in the text, whatever it contains. Intl.Segmenter is not used: it took 39 s for one string of
 * 200,000 characters.
 */

/** Longest word: longer strings are data, such as base64. A SHA-512 in hex has 128 characters. */
const WORD_CHARS_MAX = 128;
/** Longest word that is stemmed and split at capitals: as long as the longest identifiers in real code. */
const IDENTIFIER_CHARS_MAX = 64;

const PART = /[^-./:'’_]+/g;
const CAMEL = /(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u;
const NOT_ASCII = /[\u0080-\uffff]/;
const ASCII_WORD = /^[a-z]+$/;
const CONTRACTION = /^(.+?)(?:['’](?:s|re|ve|ll|d|m)|(n)['’](t))$/i;
const UNSPACED_SCRIPT =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{sc=Hangul}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]+/gu;
const LATIN_MARKS = /(?<=\p{sc=Latin})\p{M}+/gu;

export interface Terms {
  /** The words in the order of the text, with repeats. */
  readonly words: readonly string[];
  /** Whole forms of compounds; their parts are among the words. */
  readonly wholes: readonly string[];
}

export function readTerms(text: string): Terms {
  const words: string[] = [];
  const wholes: string[] = [];
  let end = 0;
  for (;;) {
    const start = wordStart(text, end);
    if (start === text.length) return { words, wholes };
    end = wordEnd(text, start);
    const word = text.slice(start, end);
    const known = knownWords.get(word) ?? makeTerms(word);
    if (typeof known === 'string') {
      words.push(known);
      continue;
    }
    for (const term of known.words) words.push(term);
    for (const whole of known.wholes) wholes.push(whole);
  }
}

/**
 * Bound on cached words, of 110 bytes each. Each thread holds up to twice as many. They save 0.3 ms for a text of 2 kB.
 * Four times as many would save 0.03 ms more, and take 5 MB more.
 */
const KNOWN_WORDS = 8_192;
/** The terms of each word. Most words have one term, which is stored as a string to save memory. */
const knownWords = new Known<Terms | string>(KNOWN_WORDS);

function makeTerms(word: string): Terms | string {
  const words: string[] = [];
  const wholes: string[] = [];
  addWord(word, words, wholes);
  const [first = ''] = words;
  const terms = words.length === 1 && wholes.length === 0 ? copied(first) : { words, wholes };
  if (word.length <= IDENTIFIER_CHARS_MAX) knownWords.set(word, terms);
  return terms;
}

/** Returns the terms that are indexed: the words, then the whole forms. */
export function termsOf(text: string): string[] {
  const { words, wholes } = readTerms(text);
  return [...words, ...wholes];
}

/** Says whether the text has at least `count` different terms that `counts` accepts, and stops reading there. */
export function hasTerms(
  text: string,
  count: number,
  counts: (term: string) => boolean = () => true,
): boolean {
  const found = new Set<string>();
  for (let end = 0; end < text.length && found.size < count;) {
    const start = wordStart(text, end);
    end = wordEnd(text, start);
    const terms: string[] = [];
    addWord(text.slice(start, end), terms, terms);
    for (const term of terms) if (counts(term)) found.add(term);
  }
  return found.size >= count;
}

function addWord(word: string, terms: string[], wholes: string[]): void {
  // Most words have no parts, so the patterns below would find nothing.
  if (ASCII_WORD.test(word)) {
    if (word.length <= WORD_CHARS_MAX) addTerm(word, terms);
    return;
  }
  if (!NOT_ASCII.test(word)) {
    if (word.length <= WORD_CHARS_MAX) addSpaced(word, terms, wholes);
    return;
  }
  let from = 0;
  for (const run of word.matchAll(UNSPACED_SCRIPT)) {
    addForeign(word.slice(from, run.index), terms, wholes);
    addPairs(run[0], terms);
    from = run.index + run[0].length;
  }
  addForeign(word.slice(from), terms, wholes);
}

// Normalising takes quadratic time for a run of combining marks, so long words are skipped.
function addForeign(word: string, terms: string[], wholes: string[]): void {
  if (word === '' || word.length > WORD_CHARS_MAX) return;
  const folded = word.normalize('NFKD').replace(LATIN_MARKS, '').normalize('NFC');
  // Normalising may turn one character into several, brackets and spaces among them.
  for (const part of wordsIn(folded)) addSpaced(part, terms, wholes);
}

function addSpaced(word: string, terms: string[], wholes: string[]): void {
  const [, base, not1, not2] = CONTRACTION.exec(word) ?? [];
  const plain = base === undefined ? word : `${base}${not1 ?? ''}${not2 ?? ''}`;
  const pieces = piecesOf(plain);
  for (const piece of pieces) addTerm(piece, terms);
  addWhole(pieces, wholes);
  // A file is named with its folders, and without them.
  const name = plain.slice(plain.lastIndexOf('/') + 1);
  if (name.length < plain.length) addWhole(piecesOf(name), wholes);
}

function piecesOf(word: string): readonly string[] {
  const parts = word.match(PART) ?? [];
  return word.length <= IDENTIFIER_CHARS_MAX ? parts.flatMap((part) => part.split(CAMEL)) : parts;
}

function addWhole(pieces: readonly string[], wholes: string[]): void {
  if (pieces.length < 2) return;
  // Versions and dates keep a separator; otherwise 3.51.3 would become the number 3513.
  addTerm(pieces.join(pieces.every((piece) => /^\d+$/.test(piece)) ? '_' : ''), wholes);
}

function addTerm(piece: string, terms: string[]): void {
  const said = piece.toLowerCase();
  if (STOP_WORDS.has(said) || /^[a-z]$/.test(said)) return;
  const word = WORD_FORMS.get(said) ?? said;
  const isEnglish = word.length <= IDENTIFIER_CHARS_MAX && ASCII_WORD.test(word);
  terms.push(isEnglish ? stem(word) : word);
}

function addPairs(run: string, terms: string[]): void {
  const characters = Array.from(run);
  if (characters.length === 1) terms.push(run);
  for (let i = 0; i + 1 < characters.length; i += 1) {
    terms.push(`${characters[i] ?? ''}${characters[i + 1] ?? ''}`);
  }
}

/** Words that do not show a text's subject: English function words, and small talk (greetings, thanks, "please"). */
export const STOP_WORDS: ReadonlySet<string> = new Set(
  `a about above after again against all also am an and any are aren arent as at be because been
  before being below between both but by can cannot cant could couldn couldnt did didn didnt do does
  doesn doesnt doing don dont down during each else ever few for from further had hadn hadnt has hasn
  hasnt have haven havent having he her here hers herself him himself his how i if in into is isn isnt
  it its itself just let lets me more most my myself no nor not now of off on once only or other our
  ours ourselves out over own per really same she should shouldn shouldnt so some such than that the
  their theirs them themselves then there these they this those through to too under until up upon us
  very was wasn wasnt we were weren werent what when where whether which while who whom whose why will
  with within without wont would wouldn wouldnt yes you your yours yourself yourselves
  hello hi hey ok okay please thank thanks sure yeah yep nope bye`.split(/\s+/),
);
