import { datesOf, isTimeWord } from './dates.ts';
import { RANKING, type RankingWeights } from './ranking-weights.ts';
import type { Evidence } from './relevance.ts';

/**
 * Which passages answer a question, best first: BM25 over a passage and, with less weight, its
 * neighbours in the conversation, then what plain BM25 does not know. Pure: the store finds the
 * candidates, this orders them. It never looks at the clock and never prefers the new to the old
 * as such: a question is as likely about last year as about today.
 */

export interface Candidate {
  readonly id: number;
  readonly record: number;
  readonly role: 'user' | 'assistant';
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly terms: readonly string[];
  /** The passages said just before and after, in the same conversation; empty at its ends. */
  readonly previous: readonly string[];
  readonly next: readonly string[];
}

/** A term of the question and how often it is said elsewhere. */
export interface QuestionTerm {
  readonly term: string;
  /** 1 for what the person asked, less for what stands around it. */
  readonly weight: number;
  /** Passages that hold it, in the spaces that are searched. */
  readonly frequency: number;
  /** How much finding it proves, from 0 to 1. */
  readonly rarity: number;
}

export interface RankedQuestion {
  /** Distinct. */
  readonly terms: readonly QuestionTerm[];
  /** Neighbouring words of what the person asked, as `first second`. */
  readonly pairs: ReadonlySet<string>;
  readonly asksWhen: boolean;
  /** Words of dates that the question names: '2024', 'may'. */
  readonly dates: readonly string[];
}

export interface Corpus {
  /** Passages in the spaces that are searched. */
  readonly passages: number;
  readonly averageTerms: number;
}

export interface Ranked<Kind extends Candidate> {
  readonly candidate: Kind;
  readonly score: number;
  readonly evidence: Evidence;
}

export function rankCandidates<Kind extends Candidate>(
  question: RankedQuestion,
  candidates: readonly Kind[],
  corpus: Corpus,
): Ranked<Kind>[] {
  const scorer = new Scorer(question, corpus, RANKING);
  const scored = candidates.map((candidate) => ({ candidate, ...scorer.score(candidate) }));
  return diversify(scored, RANKING);
}

class Scorer {
  readonly #question: RankedQuestion;
  readonly #corpus: Corpus;
  readonly #weights: RankingWeights;
  /** Weight times damped inverse document frequency. */
  readonly #values = new Map<string, number>();
  readonly #rarities = new Map<string, number>();

  constructor(question: RankedQuestion, corpus: Corpus, weights: RankingWeights) {
    this.#question = question;
    this.#corpus = corpus;
    this.#weights = weights;
    for (const term of question.terms) {
      this.#values.set(term.term, valueOf(term, corpus.passages));
      this.#rarities.set(term.term, term.rarity);
    }
  }

  score(candidate: Candidate): { score: number; evidence: Evidence } {
    const { previousScore, nextScore } = this.#weights;
    const own = countsOf(candidate.terms, this.#values);
    const before = countsOf(candidate.previous, this.#values);
    const after = countsOf(candidate.next, this.#values);
    let score = this.#fieldScore(candidate, { own, before, after });
    score += this.#pairScore(candidate.terms);
    // An answer beside a good passage is likely good: neighbours lend part of their own score.
    score += nextScore * this.#plainScore(after, candidate.next.length);
    score += previousScore * this.#plainScore(before, candidate.previous.length);
    score *= this.#factor(candidate);
    return { score, evidence: this.#evidence({ own, before, after }) };
  }

  #fieldScore(candidate: Candidate, counts: Counts): number {
    const { previousField, nextField } = this.#weights;
    let sum = 0;
    for (const [term, value] of this.#values) {
      const frequency =
        (counts.own.get(term) ?? 0) +
        previousField * (counts.before.get(term) ?? 0) +
        nextField * (counts.after.get(term) ?? 0);
      if (frequency > 0) sum += value * this.#saturate(frequency, candidate.terms.length);
    }
    return sum;
  }

  #plainScore(counts: ReadonlyMap<string, number>, length: number): number {
    let sum = 0;
    for (const [term, count] of counts) {
      sum += (this.#values.get(term) ?? 0) * this.#saturate(count, length);
    }
    return sum;
  }

  #saturate(frequency: number, length: number): number {
    const { k1, b } = this.#weights;
    const norm = 1 - b + (b * length) / Math.max(1, this.#corpus.averageTerms);
    return (frequency * (k1 + 1)) / (frequency + k1 * norm);
  }

  #pairScore(terms: readonly string[]): number {
    let sum = 0;
    let last = '';
    const seen = new Set<string>();
    for (const term of terms) {
      const pair = `${last} ${term}`;
      if (this.#question.pairs.has(pair) && !seen.has(pair)) {
        seen.add(pair);
        sum += ((this.#values.get(last) ?? 0) + (this.#values.get(term) ?? 0)) / 2;
      }
      last = term;
    }
    return this.#weights.pair * sum;
  }

  #factor(candidate: Candidate): number {
    const { userRole, when, date } = this.#weights;
    let factor = candidate.role === 'user' ? userRole : 1;
    if (this.#question.asksWhen && candidate.terms.some(isTimeWord)) {
      factor *= 1 + when;
    }
    const { dates } = this.#question;
    if (dates.length > 0) {
      const said = datesOf(candidate.at);
      const own = new Set(candidate.terms);
      if (dates.every((word) => said.has(word) || own.has(word))) factor *= 1 + date;
    }
    return factor;
  }

  #evidence({ own, before, after }: Counts): Evidence {
    let held = 0;
    let asked = 0;
    let words = 0;
    for (const [term, rarity] of this.#rarities) {
      asked += rarity;
      const isOwn = own.has(term);
      if (rarity === 0 || (!isOwn && !before.has(term) && !after.has(term))) continue;
      words += 1;
      held += isOwn ? rarity : rarity * this.#weights.neighbourCoverage;
    }
    return { held, asked, words };
  }
}

interface Counts {
  readonly own: ReadonlyMap<string, number>;
  readonly before: ReadonlyMap<string, number>;
  readonly after: ReadonlyMap<string, number>;
}

/** What one passage gains by holding the term: its weight times how rare it is, damped. */
export function valueOf({ weight, frequency }: QuestionTerm, passages: number): number {
  return weight * inverseFrequency(frequency, passages) ** RANKING.idfPower;
}

/**
 * Always above zero. A store of one record must know that its words are rare in the language, so a
 * few hundred passages without them are pretended.
 */
export function inverseFrequency(frequency: number, passages: number): number {
  const all = Math.max(passages, frequency) + PRETENDED_PASSAGES;
  return Math.log(1 + (all - frequency + 0.5) / (frequency + 0.5));
}

/** With 200, a word in one of one passages counts 4.9 and one in 50 of 50 still 1.7. */
const PRETENDED_PASSAGES = 200;

function countsOf(
  terms: readonly string[],
  wanted: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const term of terms) if (wanted.has(term)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return counts;
}

/**
 * Best first, but what repeats an earlier one, or comes from the same record, steps back; and of two
 * statements on the same thing the later one comes first, unless only the earlier is the person's.
 */
function diversify<Kind extends Candidate>(
  scored: readonly Ranked<Kind>[],
  weights: RankingWeights,
): Ranked<Kind>[] {
  const waiting = scored
    .toSorted(
      (a, b) =>
        b.score - a.score || b.candidate.at - a.candidate.at || b.candidate.id - a.candidate.id,
    )
    .slice(0, weights.orderedMax)
    .map((one) => ({ one, words: new Set(one.candidate.terms), likeness: 0, isRepeated: false }));
  const chosen: Ranked<Kind>[] = [];
  while (waiting.length > 0) {
    const { best, bestScore } = bestOf(waiting, weights);
    const [taken] = waiting.splice(latestOf(waiting, best, weights), 1);
    if (taken === undefined) break;
    chosen.push({ ...taken.one, score: bestScore });
    for (const other of waiting) {
      other.likeness = Math.max(other.likeness, similarity(other.words, taken.words));
      if (other.one.candidate.record === taken.one.candidate.record) other.isRepeated = true;
    }
  }
  return chosen;
}

interface Waiting {
  readonly one: { readonly score: number; readonly candidate: Candidate };
  readonly words: ReadonlySet<string>;
  readonly likeness: number;
  readonly isRepeated: boolean;
}

function bestOf(waiting: readonly Waiting[], weights: RankingWeights) {
  let best = 0;
  let bestScore = -1;
  for (const [index, { one, likeness, isRepeated }] of waiting.entries()) {
    // Sorted by score: nothing further down can win.
    if (one.score <= bestScore) break;
    const score =
      one.score * (1 - weights.similar * likeness) * (isRepeated ? weights.sameRecord : 1);
    if (score <= bestScore) continue;
    best = index;
    bestScore = score;
  }
  return { best, bestScore };
}

/** Where the latest statement on the same thing stands that answers nearly as well. */
function latestOf(waiting: readonly Waiting[], best: number, weights: RankingWeights): number {
  const first = waiting[best];
  if (first === undefined) return best;
  let latest = best;
  let at = first.one.candidate.at;
  for (const [index, { one, words }] of waiting.entries()) {
    if (one.score < weights.nearlyAsGood * first.one.score) break;
    const { role, at: saidAt } = one.candidate;
    const outranks = saidAt > at && (role === 'user' || first.one.candidate.role === 'assistant');
    if (!outranks || similarity(words, first.words) < weights.sameThing) continue;
    latest = index;
    at = saidAt;
  }
  return latest;
}

/** Jaccard: shared words of all words. */
function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  let shared = 0;
  for (const word of a) if (b.has(word)) shared += 1;
  return shared === 0 ? 0 : shared / (a.size + b.size - shared);
}
