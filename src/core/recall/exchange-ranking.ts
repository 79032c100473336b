/**
 * Ranks the earlier exchanges by how likely they help an agent with a prompt, and says how much the prompt shares with
 * them. It ranks whole exchanges, because the prompt often shares its words with one part of an exchange (the request
 * or the middle of the answer), while the needed fact is in another part (the answer's conclusion).
 */

export interface RememberedExchange {
  /** The words of request and answer, as numbers: see wordNumber. Either may be empty. */
  readonly asked: Int32Array;
  readonly answered: Int32Array;
  /** Index of the first word of the answer's conclusion. */
  readonly concludedFrom: number;
  /** Length of the answer in UTF-16 units. */
  readonly answerChars: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The branch; '' if unknown. */
  readonly branch: string;
  /** True if svc is not certain that the user wrote the request. Such an exchange ranks behind others. */
  readonly isUnverified: boolean;
}

export interface ExchangeTerm {
  readonly term: string;
  /** Inverse document frequency: the rarer the term, the more a match counts. */
  readonly value: number;
  /** True if the term is in the prompt itself; false if it is in the text around the prompt. */
  readonly isOwn: boolean;
}

export interface ExchangeQuestion {
  /** The distinct search terms of the question, at most TERMS_MAX. */
  readonly terms: readonly ExchangeTerm[];
  /** The words of the prompt in their order. */
  readonly words: readonly string[];
  /** For each file that the session worked on, the words of its name. */
  readonly files: readonly (readonly string[])[];
  /** The branch of the work; '' if unknown. */
  readonly branch: string;
  readonly now: number;
  /** The approximate number of exchanges in the memory. */
  readonly exchanges: number;
  /** Mean number of terms in an exchange, a request and a conclusion. */
  readonly averageTerms: number;
  readonly averageAsked: number;
  readonly averageConcluded: number;
}

export interface RankedExchange<Kind> {
  readonly exchange: Kind;
  readonly score: number;
}

/** Bound on terms: phraseOf() needs positions below 256. */
export const TERMS_MAX = 255;

/** BM25's usual constants: exchanges are long and of uneven length, unlike passages. */
const K1 = 1.2;
const B = 0.75;
/** How many times each word of the request counts, because the request says what the exchange is about. */
const ASKED_TIMES = 2;
/** Weight of a word from the text around the prompt; the prompt's own words weigh 1. */
const AROUND_WEIGHT = 0.5;
/** Weight of `wide` relative to `own`; see Scores. */
const WIDE_SHARE = 2;
/** Weight of `concluded` relative to `own`: a prompt's word in a conclusion is rarely a coincidence. */
const CONCLUSION_SHARE = 1;
/** Bonus for naming the session's files: such an exchange is likely about the same work. */
const FILES_SHARE = 0.6;
/** Bonus for the same branch: a branch is usually one piece of work. Branches that everybody uses do not count. */
const BRANCH_SHARE = 0.5;
const COMMON_BRANCHES: ReadonlySet<string> = new Set(['main', 'master', 'develop', 'trunk', '']);
/** Bonus for a new exchange, because it is more likely still true. After a day half of it is left. */
const NEW_SHARE = 0.6;
/** Length below which an answer counts as short, in UTF-16 units: such an answer has no conclusion. */
const SHORT_ANSWER_CHARS = 150;
const SHORT_ANSWER_PENALTY = 0.3;
/**
 * Number of best scores from whose mean the signal is computed (see running-share.ts): a single match may be a
 * coincidence.
 */
const SIGNAL_OF = 3;
/**
 * The factor of the branch on the signal: 0.75, and 0.15 more for each of the five best exchanges that is on the
 * prompt's branch. Chance matches occur on any branch.
 */
const SIGNAL_ELSEWHERE = 0.75;
const SIGNAL_ON_BRANCH = 0.15;
const BRANCHES_OF = 5;
const DAY_MS = 86_400_000;

/** Ranks the exchanges, best first; those with an unverified request come last. `signal`: see running-share.ts. */
export function rankExchanges<Kind extends RememberedExchange>(
  question: ExchangeQuestion,
  exchanges: readonly Kind[],
): { readonly ranked: readonly RankedExchange<Kind>[]; readonly signal: number } {
  const scorer = new Scorer(question);
  const scores = exchanges.map((exchange) => scorer.score(exchange));
  const ownMost = Math.max(1e-9, ...scores.map(({ own, phrases }) => own + phrases));
  const wideMost = Math.max(1e-9, ...scores.map(({ wide, phrases }) => wide + phrases));
  const concludedMost = Math.max(1e-9, ...scores.map(({ concluded }) => concluded));
  const named = filesNamed(question.files, exchanges);
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

/** Hashes a word by FNV-1a, because numbers compare faster than texts and take less memory. */
export function wordNumber(word: string): number {
  let number = FNV_OFFSET;
  for (let at = 0; at < word.length; at += 1) {
    number = Math.imul(number ^ word.charCodeAt(at), FNV_PRIME);
  }
  return number;
}

/** Returns the numbers of the words in a text from an index on. One space separates two words. */
export function wordNumbers(text: string, from: number): number[] {
  const numbers: number[] = [];
  let start = from;
  let number = FNV_OFFSET;
  for (let at = from; at <= text.length; at += 1) {
    const code = at === text.length ? SPACE : text.charCodeAt(at);
    if (code !== SPACE) {
      number = Math.imul(number ^ code, FNV_PRIME);
      continue;
    }
    if (at > start) numbers.push(number);
    start = at + 1;
    number = FNV_OFFSET;
  }
  return numbers;
}

const FNV_OFFSET = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;
const SPACE = 32;

/** Says whether a branch is used for everything, so that it does not show what belongs together. */
export function isCommonBranch(branch: string): boolean {
  return COMMON_BRANCHES.has(branch);
}

/** Returns for each exchange how many of the files it names; a file counts more if few exchanges name it. */
function filesNamed(
  files: ExchangeQuestion['files'],
  exchanges: readonly RememberedExchange[],
): readonly number[] {
  const names = new Map<number, number[][]>();
  for (const words of files) {
    const numbers = words.map(wordNumber);
    const [first] = numbers;
    if (first !== undefined) names.set(first, [...(names.get(first) ?? []), numbers]);
  }
  if (names.size === 0) return exchanges.map(() => 0);
  const found = exchanges.map(
    ({ asked, answered }) => new Set([...namesIn(asked, names), ...namesIn(answered, names)]),
  );
  const counts = new Map<readonly number[], number>();
  for (const all of found) for (const name of all) counts.set(name, (counts.get(name) ?? 0) + 1);
  return found.map((all) => {
    let sum = 0;
    for (const name of all) sum += Math.log(1 + exchanges.length / ((counts.get(name) ?? 0) + 0.5));
    return sum;
  });
}

/** Returns the names that occur in a text. A name is the list of its words; `names` has them by their first word. */
function namesIn(
  words: Int32Array,
  names: ReadonlyMap<number, readonly (readonly number[])[]>,
): readonly (readonly number[])[] {
  const found: (readonly number[])[] = [];
  for (const [at, word] of words.entries()) {
    const begun = names.get(word);
    if (begun === undefined) continue;
    found.push(...begun.filter((name) => name.every((one, next) => words[at + next] === one)));
  }
  return found;
}

/** Returns the factor of the branch on the signal; 1 if the branch is unknown. */
function branchFactor(own: string, ranked: readonly RankedExchange<RememberedExchange>[]): number {
  if (own === '') return 1;
  const onBranch = ranked
    .slice(0, BRANCHES_OF)
    .filter(({ exchange: { branch } }) => branch === own).length;
  return SIGNAL_ELSEWHERE + SIGNAL_ON_BRANCH * onBranch;
}

/** Returns a divisor for the signal: a larger memory has rarer words and more chance matches. */
function scaleOf({ exchanges }: ExchangeQuestion): number {
  return Math.log(2 + exchanges);
}

interface Scores {
  /** Score by the prompt's words: that of the whole exchange plus that of its request, which so counts more. */
  readonly own: number;
  /** Score by the words of the prompt and of the text around it, in the whole exchange. */
  readonly wide: number;
  /** Score by the prompt's words in the conclusion, without the rest of the exchange. */
  readonly concluded: number;
  /** Score for words that are adjacent both in the prompt and in the exchange. */
  readonly phrases: number;
}

class Scorer {
  readonly #question: ExchangeQuestion;
  /** For each word's number: the position of the word in the question, counted from 1. */
  readonly #places = new Map<number, number>();
  /** The score of each phrase, by its number; see phraseOf(). */
  readonly #phrases = new Map<number, number>();
  readonly #said: Uint32Array;
  readonly #answered: Uint32Array;
  readonly #concluded: Uint32Array;

  constructor(question: ExchangeQuestion) {
    this.#question = question;
    for (const [index, { term }] of question.terms.entries()) {
      this.#places.set(wordNumber(term), index + 1);
    }
    this.#said = new Uint32Array(question.terms.length);
    this.#answered = new Uint32Array(question.terms.length);
    this.#concluded = new Uint32Array(question.terms.length);
    this.#readPhrases();
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

  #readPhrases(): void {
    const { terms, words } = this.#question;
    let last = 0;
    for (const word of words) {
      const place = this.#places.get(wordNumber(word)) ?? 0;
      const [first, second] = [terms[last - 1], terms[place - 1]];
      if (last !== place && first?.isOwn === true && second?.isOwn === true) {
        this.#phrases.set(phraseOf(last, place), (first.value + second.value) / 2);
      }
      last = place;
    }
  }

  /** Counts the question's terms in `words`, and adds the phrases that occur there to `found`. */
  #count(words: Int32Array, counts: Uint32Array, found: Set<number>): void {
    counts.fill(0);
    let last = 0;
    for (const word of words) {
      const place = this.#places.get(word) ?? 0;
      if (place !== 0) {
        counts[place - 1] = (counts[place - 1] ?? 0) + 1;
        const phrase = last === 0 ? 0 : phraseOf(last, place);
        if (this.#phrases.has(phrase)) found.add(phrase);
      }
      last = place;
    }
  }
}

/** Returns a number for two adjacent words. The arguments are their positions in the question. */
function phraseOf(first: number, second: number): number {
  return first * (TERMS_MAX + 1) + second;
}

function normOf(length: number, average: number): number {
  return K1 * (1 - B + (B * length) / Math.max(1, average));
}

function saturate(count: number, norm: number): number {
  return (count * (K1 + 1)) / (count + norm);
}
