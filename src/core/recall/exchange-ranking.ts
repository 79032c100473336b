import type { Vocabulary } from './vocabulary.ts';

/**
 * Finds the earlier exchanges that help an agent with a prompt, best first, and how much the prompt
 * shares with them. The unit is the whole exchange: the needed fact is in an answer's conclusion,
 * while the prompt shares words with the request or the middle of the answer. Pure.
 */

export interface RememberedExchange {
  /** Numbers of the words that the person asked and the assistant answered; either may be empty. */
  readonly asked: Uint32Array;
  readonly answered: Uint32Array;
  /** Where the end of the answer begins among the words of the answer. */
  readonly concludedFrom: number;
  /** UTF-16 units of the answer. */
  readonly answerChars: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** '' when unknown. */
  readonly branch: string;
  /** It is not verified that a person said its request: it comes behind all that a person began. */
  readonly isUnverified: boolean;
}

export interface ExchangeTerm {
  readonly term: string;
  /** Inverse frequency: what an exchange gains that holds the term once. */
  readonly value: number;
  /** True if the person said it in this prompt; false if it is from the text around the prompt. */
  readonly isOwn: boolean;
}

export interface ExchangeQuestion {
  /** Distinct, at most TERMS_MAX. */
  readonly terms: readonly ExchangeTerm[];
  /** The words of the prompt in their order. */
  readonly words: readonly string[];
  /** The words of each name of a file that the session worked on, as a text says them. */
  readonly files: readonly (readonly string[])[];
  /** The branch of the work; '' when unknown. */
  readonly branch: string;
  readonly now: number;
  /** Exchanges in the memory, about. */
  readonly exchanges: number;
  /** Terms of an exchange, of a request and of an answer's end, in the mean. */
  readonly averageTerms: number;
  readonly averageAsked: number;
  readonly averageConcluded: number;
}

export interface RankedExchange<Kind> {
  readonly exchange: Kind;
  readonly score: number;
}

/** Places of terms are bytes; 0 means no place. */
export const TERMS_MAX = 255;

/** BM25's usual constants: exchanges are long and uneven, unlike passages. */
const K1 = 1.2;
const B = 0.75;
/** A word of the request counts as said twice: the request says what the exchange was about. */
const ASKED_TIMES = 2;
/** A word of the previous answer or of the last prompts, beside 1 for the prompt's own words. */
const AROUND_WEIGHT = 0.5;
/** How much the score by own words and surroundings counts, beside the one by own words alone. */
const WIDE_SHARE = 2;
/** What an answer ends with is what it says: a word of the prompt there is rarely there by chance. */
const CONCLUSION_SHARE = 1;
/** An exchange that speaks of the files of this session is about the same work. */
const FILES_SHARE = 0.6;
/** Work on one branch is one piece of work. Everybody's branch says nothing. */
const BRANCH_SHARE = 0.5;
const COMMON_BRANCHES: ReadonlySet<string> = new Set(['main', 'master', 'develop', 'trunk', '']);
/** The newer of two equally good ones is likelier to be still true, and to be part of this work. */
const NEW_SHARE = 0.6;
/** A short answer concludes nothing. */
const SHORT_ANSWER_CHARS = 150;
const SHORT_ANSWER_PENALTY = 0.3;
/** The signal is the mean of the best few: one lucky match is no subject. */
const SIGNAL_OF = 3;
/**
 * The signal of a prompt whose best exchanges were on other branches, and what each one on its own
 * branch adds: words that are shared by chance are shared with any branch.
 */
const SIGNAL_ELSEWHERE = 0.75;
const SIGNAL_ON_BRANCH = 0.15;
const BRANCHES_OF = 5;
const DAY_MS = 86_400_000;

/** `vocabulary`: the one that numbered the words of the exchanges. */
export function rankExchanges<Kind extends RememberedExchange>(
  question: ExchangeQuestion,
  exchanges: readonly Kind[],
  vocabulary: Vocabulary,
): { readonly ranked: readonly RankedExchange<Kind>[]; readonly signal: number } {
  const scorer = new Scorer(question, vocabulary);
  const scores = exchanges.map((exchange) => scorer.score(exchange));
  const ownMost = Math.max(1e-9, ...scores.map(({ own, phrases }) => own + phrases));
  const wideMost = Math.max(1e-9, ...scores.map(({ wide, phrases }) => wide + phrases));
  const concludedMost = Math.max(1e-9, ...scores.map(({ concluded }) => concluded));
  const named = filesNamed(question.files, exchanges, vocabulary);
  const namedMost = Math.max(1e-9, ...named);
  const ranked = exchanges
    .map((exchange, place) => {
      const { own = 0, wide = 0, concluded = 0, phrases = 0 } = scores[place] ?? {};
      const isOnBranch = exchange.branch === question.branch && !isCommonBranch(question.branch);
      const days = Math.max(0, question.now - exchange.at) / DAY_MS;
      const score =
        (own + phrases) / ownMost +
        (WIDE_SHARE * (wide + phrases)) / wideMost +
        (CONCLUSION_SHARE * concluded) / concludedMost +
        (FILES_SHARE * (named[place] ?? 0)) / namedMost +
        (isOnBranch ? BRANCH_SHARE : 0) +
        NEW_SHARE / (1 + days) -
        (exchange.answerChars < SHORT_ANSWER_CHARS ? SHORT_ANSWER_PENALTY : 0);
      return { exchange, score };
    })
    .toSorted(
      (a, b) =>
        Number(a.exchange.isUnverified) - Number(b.exchange.isUnverified) ||
        b.score - a.score ||
        b.exchange.at - a.exchange.at,
    );
  const best = scores
    .map(({ own }) => own)
    .toSorted((a, b) => b - a)
    .slice(0, SIGNAL_OF);
  const shared = best.reduce((total, own) => total + own, 0) / SIGNAL_OF;
  const signal = (shared * branchFactor(question.branch, ranked)) / scaleOf(question);
  return { ranked, signal };
}

/** A branch on which everything happens says nothing about what belongs together. */
export function isCommonBranch(branch: string): boolean {
  return COMMON_BRANCHES.has(branch);
}

/** By exchange: how many of the files it names, each by how few of the others name it. */
function filesNamed(
  files: ExchangeQuestion['files'],
  exchanges: readonly RememberedExchange[],
  vocabulary: Vocabulary,
): readonly number[] {
  const names = new Map<number, Uint32Array[]>();
  for (const words of files) {
    const numbers = Uint32Array.from(words, (word) => vocabulary.numberOf(word));
    const [first] = numbers;
    if (first !== undefined) names.set(first, [...(names.get(first) ?? []), numbers]);
  }
  if (names.size === 0) return exchanges.map(() => 0);
  const found = exchanges.map(
    ({ asked, answered }) => new Set([...namesIn(asked, names), ...namesIn(answered, names)]),
  );
  const counts = new Map<Uint32Array, number>();
  for (const all of found) for (const name of all) counts.set(name, (counts.get(name) ?? 0) + 1);
  return found.map((all) => {
    let sum = 0;
    for (const name of all) sum += Math.log(1 + exchanges.length / ((counts.get(name) ?? 0) + 0.5));
    return sum;
  });
}

/** `names`: by their first word. */
function namesIn(
  words: Uint32Array,
  names: ReadonlyMap<number, readonly Uint32Array[]>,
): readonly Uint32Array[] {
  const found: Uint32Array[] = [];
  for (const [at, word] of words.entries()) {
    const begun = names.get(word);
    if (begun === undefined) continue;
    found.push(...begun.filter((name) => name.every((one, next) => words[at + next] === one)));
  }
  return found;
}

/** Without a known branch the signal does not change. */
function branchFactor(own: string, ranked: readonly RankedExchange<RememberedExchange>[]): number {
  if (own === '') return 1;
  const onBranch = ranked
    .slice(0, BRANCHES_OF)
    .filter(({ exchange: { branch } }) => branch === own).length;
  return SIGNAL_ELSEWHERE + SIGNAL_ON_BRANCH * onBranch;
}

/** A larger memory has rarer words, and more matches by chance. */
function scaleOf({ exchanges }: ExchangeQuestion): number {
  return Math.log(2 + exchanges);
}

interface Scores {
  /** By the prompt's words, in the exchange and once more in its request alone. */
  readonly own: number;
  /** By the words of the prompt and around it, in the whole exchange. */
  readonly wide: number;
  /** By the prompt's words, in the end of the answer alone. */
  readonly concluded: number;
  /** For words that are adjacent in the prompt and in the exchange. */
  readonly phrases: number;
}

class Scorer {
  readonly #question: ExchangeQuestion;
  /** By a word's number: the place of the term, from 1 on, or 0. */
  readonly #places: Uint8Array;
  /** Value of a phrase, by the places of its two terms. */
  readonly #phrases = new Map<number, number>();
  readonly #said: Uint32Array;
  readonly #answered: Uint32Array;
  readonly #concluded: Uint32Array;

  constructor(question: ExchangeQuestion, vocabulary: Vocabulary) {
    this.#question = question;
    const numbers = question.terms.map(({ term }) => vocabulary.numberOf(term));
    this.#places = new Uint8Array(vocabulary.size);
    for (const [index, number] of numbers.entries()) this.#places[number] = index + 1;
    this.#said = new Uint32Array(question.terms.length);
    this.#answered = new Uint32Array(question.terms.length);
    this.#concluded = new Uint32Array(question.terms.length);
    this.#readPhrases(vocabulary);
  }

  score({ asked, answered, concludedFrom }: RememberedExchange): Scores {
    const { terms, averageTerms, averageAsked, averageConcluded } = this.#question;
    const found = new Set<number>();
    this.#count(asked, this.#said, found);
    this.#count(answered, this.#answered, found);
    const end = answered.subarray(concludedFrom);
    this.#count(end, this.#concluded, found);
    const norm = normOf(ASKED_TIMES * asked.length + answered.length, averageTerms);
    const askedNorm = normOf(asked.length, averageAsked);
    const endNorm = normOf(end.length, averageConcluded);
    let whole = 0;
    let request = 0;
    let around = 0;
    let concluded = 0;
    for (const [place, { value, isOwn }] of terms.entries()) {
      const said = this.#said[place] ?? 0;
      const count = ASKED_TIMES * said + (this.#answered[place] ?? 0);
      if (count === 0) continue;
      const gain = value * saturate(count, norm);
      if (isOwn) whole += gain;
      else around += AROUND_WEIGHT * gain;
      if (!isOwn) continue;
      request += value * saturate(said, askedNorm);
      concluded += value * saturate(this.#concluded[place] ?? 0, endNorm);
    }
    let phrases = 0;
    for (const phrase of found) phrases += this.#phrases.get(phrase) ?? 0;
    return { own: whole + request, wide: whole + around, concluded, phrases };
  }

  #readPhrases(vocabulary: Vocabulary): void {
    const { terms, words } = this.#question;
    let last = 0;
    for (const word of words) {
      const place = this.#places[vocabulary.numberOf(word)] ?? 0;
      const [first, second] = [terms[last - 1], terms[place - 1]];
      if (last !== place && first?.isOwn === true && second?.isOwn === true) {
        this.#phrases.set(phraseOf(last, place), (first.value + second.value) / 2);
      }
      last = place;
    }
  }

  /** `found`: gets the phrases. */
  #count(words: Uint32Array, counts: Uint32Array, found: Set<number>): void {
    counts.fill(0);
    let last = 0;
    for (const word of words) {
      const place = this.#places[word] ?? 0;
      if (place !== 0) {
        counts[place - 1] = (counts[place - 1] ?? 0) + 1;
        const phrase = last === 0 ? 0 : phraseOf(last, place);
        if (this.#phrases.has(phrase)) found.add(phrase);
      }
      last = place;
    }
  }
}

function phraseOf(first: number, second: number): number {
  return first * (TERMS_MAX + 1) + second;
}

function normOf(length: number, average: number): number {
  return K1 * (1 - B + (B * length) / Math.max(1, average));
}

function saturate(count: number, norm: number): number {
  return (count * (K1 + 1)) / (count + norm);
}
