import { datesOf, isTimeWord, wasIn } from './dates.ts';
import { diversify } from './diversity.ts';
import type { Candidate, Corpus, Evidence, Ranked, RankedQuestion } from './ranked.ts';
import { RANKING } from './ranking-weights.ts';
import { valueOf } from './term-value.ts';

/**
 * Orders the passages that answer a question, best first: BM25 over a passage and, with less weight, its neighbours
 * in the conversation, then rules that plain BM25 lacks. Pure: the store finds the candidates. The ranking does not
 * know the time and does not prefer new passages as such: a question is as likely about last year as about today.
 */

export function rankCandidates<Kind extends Candidate>(
  question: RankedQuestion,
  candidates: readonly Kind[],
  corpus: Corpus,
): Ranked<Kind>[] {
  const scorer = new Scorer(question, corpus);
  const scored = candidates.map((candidate) => ({ candidate, ...scorer.score(candidate) }));
  return diversify(scored, question);
}

/**
 * Ranks the single passages of the candidates, best first. A candidate may be a question with its answer, of which
 * often one passage is enough.
 */
export function orderParts<Kind extends Candidate>(
  ranked: readonly Ranked<Kind>[],
): { readonly candidate: Kind; readonly part: number; readonly score: number }[] {
  return ranked
    .flatMap(({ candidate, score, shares }) =>
      shares.map((share, part) => ({ candidate, part, score: score * share })),
    )
    .toSorted((a, b) => b.score - a.score);
}

class Scorer {
  readonly #question: RankedQuestion;
  readonly #averageTerms: number;
  /** The index of each term in the lists below. */
  readonly #places = new Map<string, number>();
  /** The value of each term; see valueOf() in term-value.ts. */
  readonly #values: readonly number[];
  readonly #asked: number;
  /** Sum of the values of all terms with a rarity above 0, that of an unknown name multiplied by its rarity. */
  readonly #worth: number;
  /** First words of the question's pairs, for a quick test: most words begin no pair. */
  readonly #firsts: ReadonlySet<string>;
  /** Caches #countsOf(). Candidates share lists of terms: the text after one candidate may be a candidate itself. */
  readonly #counts = new Map<readonly string[], Counts>();

  constructor(question: RankedQuestion, corpus: Corpus) {
    this.#question = question;
    this.#averageTerms = Math.max(1, corpus.averageTerms);
    this.#values = question.terms.map((term) => valueOf(term, corpus.passages));
    this.#asked = question.terms.reduce((sum, { rarity }) => sum + rarity, 0);
    this.#worth = question.terms.reduce(
      (sum, { rarity }, place) =>
        rarity === 0 ? sum : sum + Math.max(1, rarity) * (this.#values[place] ?? 0),
      0,
    );
    this.#firsts = new Set(Array.from(question.pairs, (pair) => pair.slice(0, pair.indexOf(' '))));
    for (const [place, { term }] of question.terms.entries()) this.#places.set(term, place);
  }

  score(candidate: Candidate): Omit<Ranked<Candidate>, 'candidate'> {
    const { previousScore, nextScore, furtherScore } = RANKING;
    const own = this.#countsOf(candidate.terms);
    const before = this.#countsOf(candidate.previous);
    const after = this.#countsOf(candidate.next);
    let score = this.#fieldScore(candidate, { own, before, after });
    score += this.#pairScore(candidate.terms);
    // An answer beside a good passage is likely good, so neighbours add part of their own score.
    score += nextScore * this.#plainScore(after, candidate.next.length);
    score += previousScore * this.#plainScore(before, candidate.previous.length);
    score += furtherScore * this.#plainScoreOf(candidate.earlier);
    score += furtherScore * this.#plainScoreOf(candidate.later);
    score *= this.#factor(candidate);
    const shares = this.#sharesOf(candidate);
    const evidence = this.#evidence(candidate, { own, before, after });
    return { score, shares, evidence: { ...evidence, strength: this.#strength(evidence, score) } };
  }

  /** Returns the strength of a match; see Evidence. If a question only names a day, the texts of that day answer it. */
  #strength({ held }: Pick<Evidence, 'held'>, score: number): number {
    if (this.#worth > 0) return score / this.#worth;
    return held > 0 ? 1 : 0;
  }

  #sharesOf(candidate: Candidate): number[] {
    const { parts } = candidate;
    if (parts.length < 2) return ONE_PART;
    const { partShare } = RANKING;
    const trusted = this.#trustIn(candidate);
    const scores = parts.map(({ terms }) => this.#plainScoreOf(terms));
    const best = Math.max(...scores);
    return parts.map((part, place) => {
      const own = best === 0 ? 1 : (scores[place] ?? 0) / best;
      return ((1 - partShare + partShare * own) * this.#trustIn(part)) / trusted;
    });
  }

  /** Returns the factor for the speaker: the user, a short answer, or a long one. */
  #trustIn({ role, isOfLongAnswer }: Pick<Candidate, 'role' | 'isOfLongAnswer'>): number {
    const { userRole, shortAnswer } = RANKING;
    if (role === 'user') return userRole;
    return isOfLongAnswer === true ? 1 : shortAnswer;
  }

  /** Returns the BM25 score of a text without its neighbours. */
  #plainScoreOf(terms: readonly string[]): number {
    return terms.length === 0 ? 0 : this.#plainScore(this.#countsOf(terms), terms.length);
  }

  #countsOf(terms: readonly string[]): Counts {
    const known = this.#counts.get(terms);
    if (known !== undefined) return known;
    const times = new Uint32Array(this.#values.length);
    const held: number[] = [];
    for (const term of terms) {
      const place = this.#places.get(term);
      if (place === undefined) continue;
      if (times[place] === 0) held.push(place);
      times[place] = (times[place] ?? 0) + 1;
    }
    const counts = { times, held };
    this.#counts.set(terms, counts);
    return counts;
  }

  #fieldScore(candidate: Candidate, { own, before, after }: Fields): number {
    const { previousField, nextField, dateField } = RANKING;
    const norm = this.#normOf(candidate.terms.length);
    const dated = this.#datesAt(candidate.at);
    let sum = 0;
    for (const [place, value] of this.#values.entries()) {
      const frequency =
        (own.times[place] ?? 0) +
        previousField * (before.times[place] ?? 0) +
        nextField * (after.times[place] ?? 0) +
        (dated.has(place) ? dateField : 0);
      if (frequency > 0) sum += value * this.#saturate(frequency, norm);
    }
    return sum;
  }

  /** Returns the indexes of the question's date terms that name the month or the year of `at`. */
  #datesAt(at: number): ReadonlySet<number> {
    if (this.#question.dates.length === 0) return NO_PLACES;
    const said = datesOf(at);
    const words = this.#question.dates.filter((word) => said.has(word));
    return new Set(words.flatMap((word) => this.#places.get(word) ?? []));
  }

  #plainScore({ times, held }: Counts, length: number): number {
    const norm = this.#normOf(length);
    let sum = 0;
    for (const place of held) {
      sum += (this.#values[place] ?? 0) * this.#saturate(times[place] ?? 0, norm);
    }
    return sum;
  }

  #normOf(length: number): number {
    const { b } = RANKING;
    return 1 - b + (b * length) / this.#averageTerms;
  }

  #saturate(frequency: number, norm: number): number {
    const { k1 } = RANKING;
    return (frequency * (k1 + 1)) / (frequency + k1 * norm);
  }

  #pairScore(terms: readonly string[]): number {
    let sum = 0;
    let last = '';
    const seen = new Set<string>();
    for (const term of terms) {
      const pair = this.#firsts.has(last) ? `${last} ${term}` : '';
      if (pair !== '' && this.#question.pairs.has(pair) && !seen.has(pair)) {
        seen.add(pair);
        sum += (this.#valueOf(last) + this.#valueOf(term)) / 2;
      }
      last = term;
    }
    return RANKING.pair * sum;
  }

  #valueOf(term: string): number {
    const place = this.#places.get(term);
    return place === undefined ? 0 : (this.#values[place] ?? 0);
  }

  #factor(candidate: Candidate): number {
    const { when, date } = RANKING;
    let factor = this.#trustIn(candidate);
    if (this.#question.asksWhen && candidate.terms.some(isTimeWord)) {
      factor *= 1 + when;
    }
    if (this.#isOfTheDate(candidate)) factor *= 1 + date;
    return factor;
  }

  /**
   * Says whether a candidate is from the question's days, or is from or mentions each month and year that the question
   * names.
   */
  #isOfTheDate({ at, terms }: Candidate): boolean {
    const { dates, span } = this.#question;
    if (span !== undefined && wasIn(span, at)) return true;
    if (dates.length === 0) return false;
    const said = datesOf(at);
    const own = new Set(terms);
    return dates.every((word) => said.has(word) || own.has(word));
  }

  #evidence(candidate: Candidate, { own, before, after }: Fields): Omit<Evidence, 'strength'> {
    const isDated = this.#question.dates.length > 0 || this.#question.span !== undefined;
    const isOfTheDate = isDated && this.#isOfTheDate(candidate);
    let held = isOfTheDate ? DATE_RARITY : 0;
    for (const [place, { rarity }] of this.#question.terms.entries()) {
      if (rarity === 0) continue;
      if ((own.times[place] ?? 0) > 0) {
        held += rarity;
      } else if ((before.times[place] ?? 0) + (after.times[place] ?? 0) > 0) {
        held += rarity * RANKING.neighbourCoverage;
      }
    }
    return { held, asked: this.#asked + (isDated ? DATE_RARITY : 0) };
  }
}

/** What a match of the question's date adds to `held` (see Evidence): as much as a common word. */
const DATE_RARITY = 0.5;

const ONE_PART = [1];
const NO_PLACES: ReadonlySet<number> = new Set();

/** The question's terms in a list of terms. */
interface Counts {
  /** How often each term occurs, by the term's index in the question. */
  readonly times: Uint32Array;
  /** Indexes of the terms that occur, in order of occurrence. */
  readonly held: readonly number[];
}

interface Fields {
  readonly own: Counts;
  readonly before: Counts;
  readonly after: Counts;
}
