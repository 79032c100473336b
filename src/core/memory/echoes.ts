import type { OwnBlocks } from '../recall/own-blocks.ts';
import { termsOf } from '../recall/terms.ts';
import { EVERYDAY_WORDS } from '../recall/relevance.ts';
import { stem } from '../recall/stemming.ts';

/**
 * Removes from an answer what only repeats recalled memories (echoes). A stored echo would be recalled beside its
 * original, and after ten sessions the memory would consist of copies.
 * The time is linear in the length of the answer; recalled blocks have a token limit.
 */

// Least share of known words in an echo. A sentence with more than a fourth of new words says something new.
const REPEATED_SHARE = 0.75;
// Fewest terms that must remain after echoes are removed: three terms say no more than "as you said".
const OWN_TERMS_MIN = 4;

/** Stems of words with which people and models refer to earlier statements. */
const POINTING_WORDS: ReadonlySet<string> = new Set(
  `accord alreadi ask assist base convers earlier entri found histori know memori mention note previou
  previous record recal rememb said sai says session state stord store svc tell told user background`.split(
    /\s+/,
  ),
);

/** What the model had read before its answer: the recalled blocks in the request, and the user's question. */
export interface Heard extends OwnBlocks {
  /** The user's question. Its words count neither as repeated from a memory nor as new. */
  readonly question: string;
}

/** Returns the text without echoes: unchanged if it has none, '' if the rest says too little to be stored. */
export function withoutEchoes(text: string, { blocks, question }: Heard): string {
  const memories = blocks.flatMap(memoriesIn);
  if (memories.length === 0) return text;
  const heard: KnownWords = {
    terms: new Set(memories.flatMap((memory) => termsOf(memory))),
    tokens: tokensIn([...blocks, question].join('\n')),
    negates: memories.some((memory) => NEGATION.test(memory)),
  };
  const statements = new Statements(memories);
  const asked = new Set(termsOf(question));
  const isIgnored = (term: string): boolean => asked.has(term) || POINTING_WORDS.has(term);
  const kept: string[] = [];
  const own = new Set<string>();
  let hasEcho = false;
  let hasNews = false;
  for (const sentence of sentencesOf(text)) {
    const terms = [...new Set(termsOf(sentence))].filter((term) => !isIgnored(term));
    const isNews = saysNews(sentence, heard) || statements.areCorrectedBy(sentence, isIgnored);
    const repeats = !isNews && isEcho(terms, heard);
    if (repeats && !isAboutAsked(sentence, asked, heard)) {
      hasEcho = true;
      continue;
    }
    hasNews ||= isNews || repeats;
    kept.push(sentence);
    for (const term of terms) own.add(term);
  }
  if (!hasEcho) return text;
  return !hasNews && own.size < OWN_TERMS_MIN ? '' : kept.join('').trim();
}

interface KnownWords {
  /** Stems of all recalled memories together, because a sentence may combine several. */
  readonly terms: ReadonlySet<string>;
  /** Words, numbers and paths of the memories and the question, as written. */
  readonly tokens: ReadonlySet<string>;
  /** True if one of the memories denies something. */
  readonly negates: boolean;
}

function isEcho(terms: readonly string[], { terms: known }: KnownWords): boolean {
  if (terms.length === 0) return false;
  const held = terms.filter((term) => known.has(term)).length;
  return held >= REPEATED_SHARE * terms.length;
}

const NEGATION =
  /\b(?:not|never|no longer|cannot|neither|nor|instead|anymore|without|nicht|kein\w*|nie)\b|n['’]t\b/i;

/**
 * Says whether a sentence has something new: a number, a name, an identifier or a path that is in no memory and not in
 * the question. "port 6543" corrects "port 5432", although all other words are the same. A negation is new if no memory
 * has one.
 */
function saysNews(sentence: string, { tokens, negates }: KnownWords): boolean {
  if (!negates && NEGATION.test(sentence)) return true;
  for (const { 0: word, index } of sentence.matchAll(TOKEN)) {
    if (tokens.has(word.toLowerCase())) continue;
    if (isIdentifier(word) || /\p{N}/u.test(word)) return true;
    if (isName(word) && !beginsSentence(sentence, index)) return true;
  }
  return false;
}

/** Matches English and German words that precede a noun, such as articles, possessives and prepositions. */
const BEFORE_NOUN =
  /^(?:an?|the|this|that|these|those|my|our|your|his|her|its|their|of|for|in|on|at|to|from|with|about|der|die|das|den|dem|des|ein\p{L}{0,2}|für|von|mit|bei|im|am)$/iu;

/**
 * Says whether a sentence names something that is in the question and in no memory. Such a sentence is no echo: it
 * answers a new question with known words. A word is a name if it looks like an identifier, has a capital, or follows
 * an article, a possessive or a preposition.
 */
function isAboutAsked(
  sentence: string,
  asked: ReadonlySet<string>,
  { terms: known }: KnownWords,
): boolean {
  let before: string | undefined;
  for (const [word] of sentence.matchAll(TOKEN)) {
    const isNoun = before === undefined ? /^\p{Lu}/u.test(word) : BEFORE_NOUN.test(before);
    const isNamed = isNoun || isIdentifier(word) || /^\p{Lu}\p{Ll}/u.test(word);
    before = word;
    if (!isNamed) continue;
    const isBrought = termsOf(word).some(
      (term) => asked.has(term) && !known.has(term) && !POINTING_WORDS.has(term),
    );
    if (isBrought) return true;
  }
  return false;
}

const TOKEN = /[\p{L}\p{N}_](?:[\p{L}\p{N}_./\\:@#+~-]*[\p{L}\p{N}_])?/gu;

/** Says whether a word looks like an identifier: a path, dots or underscores, camelCase, several capitals. */
function isIdentifier(word: string): boolean {
  return /[_/\\@#]|\p{L}\.\p{L}|\p{Ll}\p{Lu}|^\p{Lu}{2}/u.test(word);
}

/** Says whether a word looks like a name: it begins with a capital, and does not only refer to earlier statements. */
function isName(word: string): boolean {
  const isPointing = termsOf(word).every((term) => POINTING_WORDS.has(term));
  return /^\p{Lu}\p{Ll}/u.test(word) && !isPointing;
}

function beginsSentence(sentence: string, index: number): boolean {
  return !/[\p{L}\p{N},;)] *["'“‘(*_]*$/u.test(sentence.slice(Math.max(0, index - 8), index));
}

function tokensIn(text: string): ReadonlySet<string> {
  const words = new Set<string>();
  for (const [word] of text.matchAll(TOKEN)) {
    words.add(word.toLowerCase());
    // "marmalade-42," may be repeated as "marmalade" or as "42".
    for (const part of word.toLowerCase().split(/[./\\:@#+~-]+/)) words.add(part);
  }
  return words;
}

/** Returns the memories in a block: an entry begins with a dash, its other lines are indented. */
function memoriesIn(block: string): readonly string[] {
  return block.split('\n- ').slice(1);
}

/** Splits a text into sentences with the text between them, so that joining them gives the original. */
function sentencesOf(text: string): string[] {
  return text.split(/(?<=[.!?]\s|[。！？\n])/u);
}

/** Stems of words with which people rephrase a statement. EVERYDAY_WORDS has others. */
const RETELLING_WORDS: ReadonlySet<string> = new Set(
  `actually additionally always answer available based basically belongs both briefly called chosen
  claimed comes configured confirmed consists contains correct currently defined depends details
  delivered exactly exists finally following found fully goes handles hence holds host hosted hosting hosts info
  informed known located main mainly maintains managed manages mostly named namely normally originally
  owned owner owns part previously provided reachable refers responsible respectively safely setup
  sits sent situated stays stands still stored stores summary supposed thing today together total typically
  usually via way works yet`
    .split(/\s+/)
    .map(stem),
);

/** Matches a contrast between two words: "x over y" is not "y over x". */
const CONTRAST =
  /(\p{L}[\p{L}\p{N}_-]*)\s+(over|than|before|after|to|into)\s+(?=(\p{L}[\p{L}\p{N}_-]*))/giu;
const CLAUSE_END = /[,;:()—–]|\s(?:and|while|but|whereas|und|aber)\s/u;
const STATEMENT_END = /\n|(?<=[.!?])\s/u;
/** Fewest common words of two statements about the same thing. */
const SHARED_MIN = 2;

/**
 * Tells corrections from echoes. An echo is a sentence of an answer that repeats a recalled memory; it is not
 * stored. A sentence that changes one ordinary word of a memory is a correction: "the cache lives in memcached" if
 * the memory says redis. All its other words are known, so counting known words would take it for an echo. A
 * rephrasing ("is kept in redis") is no correction.
 */
class Statements {
  /** The terms of each sentence of the memories, in the sentence's order. */
  readonly #statements: readonly (readonly string[])[];
  readonly #known: ReadonlySet<string>;
  readonly #contrasts: ReadonlySet<string>;

  constructor(memories: readonly string[]) {
    const sentences = memories.flatMap((memory) => memory.split(STATEMENT_END));
    this.#statements = sentences.map((sentence) => termsOf(sentence));
    this.#known = new Set(this.#statements.flat());
    this.#contrasts = new Set(sentences.flatMap((sentence) => contrastsIn(sentence)));
  }

  /** Says whether a sentence corrects a memory. `isIgnored`: words of the question, and words that refer back. */
  areCorrectedBy(sentence: string, isIgnored: (term: string) => boolean): boolean {
    const turned = contrastsIn(sentence, true);
    if (turned.some((contrast) => this.#contrasts.has(contrast))) return true;
    return sentence
      .split(CLAUSE_END)
      .some((clause) => this.#isCorrection(termsOf(clause), isIgnored));
  }

  #isCorrection(clause: readonly string[], isIgnored: (term: string) => boolean): boolean {
    const terms = clause.filter((term) => this.#known.has(term) || !isIgnored(term));
    const said = new Set(terms);
    const shared = terms.filter((term) => this.#known.has(term));
    if (new Set(shared).size < SHARED_MIN || shared.length === terms.length) return false;
    const alike = this.#statements.filter(
      (statement) => new Set(statement.filter((term) => said.has(term))).size >= SHARED_MIN,
    );
    if (alike.length === 0) return false;
    let next = 0;
    return terms.some((term) => {
      if (this.#known.has(term)) next += 1;
      if (!this.#isNew(term)) return false;
      // The known words directly before and after this term.
      const [before, after] = [shared[next - 1], shared[next]];
      return alike.some((statement) =>
        betweenIn(statement, before, after).some((replaced) => !said.has(replaced)),
      );
    });
  }

  #isNew(term: string): boolean {
    return !this.#known.has(term) && !RETELLING_WORDS.has(term) && !EVERYDAY_WORDS.has(term);
  }
}

/** Returns a statement's terms between two of its terms; if only one of these is given, the term next to it. */
function betweenIn(
  statement: readonly string[],
  before: string | undefined,
  after: string | undefined,
): readonly string[] {
  const from = before === undefined ? -1 : statement.indexOf(before);
  const to = after === undefined ? -1 : statement.indexOf(after, from + 1);
  if (from !== -1 && to !== -1) return statement.slice(from + 1, to);
  if (from !== -1 && after === undefined) return statement.slice(from + 1, from + 2);
  if (to > 0 && before === undefined) return statement.slice(to - 1, to);
  return [];
}

/** Returns a key for each contrast of a sentence, such as "x over y". `isTurned`: returns the key of "y over x". */
function contrastsIn(sentence: string, isTurned = false): string[] {
  return Array.from(sentence.matchAll(CONTRAST), ([, left = '', word = '', right = '']) => {
    const sides = [left, right].map((side) => termsOf(side).join(' '));
    return [word.toLowerCase(), ...(isTurned ? sides.toReversed() : sides)].join('\n');
  });
}
