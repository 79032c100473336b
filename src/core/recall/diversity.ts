import type { Candidate, Ranked, RankedQuestion } from './ranked.ts';
import { RANKING } from './ranking-weights.ts';

/**
 * Orders the RANKING.orderedMax passages with the highest scores, best first, and drops the others. A passage ranks
 * lower if it repeats one that is ranked before it or comes from the same record. Of two statements on the same subject
 * with nearly the same score, the later one comes first, unless only the earlier one is the user's.
 */
export function diversify<Kind extends Candidate>(
  scored: readonly Ranked<Kind>[],
  { asksForNow }: Pick<RankedQuestion, 'asksForNow'>,
): Ranked<Kind>[] {
  const likeness = new Likeness();
  const change = asksForNow ? RANKING.changeNow : RANKING.change;
  const waiting = scored
    .toSorted(
      (a, b) =>
        b.score - a.score || b.candidate.at - a.candidate.at || b.candidate.id - a.candidate.id,
    )
    .slice(0, RANKING.orderedMax)
    .map((one) => ({
      one,
      words: likeness.read(one.candidate.terms),
      likeness: 0,
      repeats: 0,
    }));
  const chosen: Ranked<Kind>[] = [];
  while (waiting.length > 0) {
    const { best, bestScore } = bestOf(waiting);
    likeness.mark(waiting[best]?.words ?? []);
    const latest = latestOf(waiting, best, { change, likeness });
    const [taken] = waiting.splice(latest, 1);
    if (taken === undefined) break;
    chosen.push({ ...taken.one, score: bestScore });
    if (latest !== best) likeness.mark(taken.words);
    for (const other of waiting) {
      other.likeness = Math.max(other.likeness, likeness.of(other.words));
      if (other.one.candidate.record === taken.one.candidate.record) other.repeats += 1;
    }
  }
  return chosen;
}

interface Waiting {
  readonly one: Ranked<Candidate>;
  readonly words: Words;
  readonly likeness: number;
  /** The number of passages of the same record that were chosen before. */
  readonly repeats: number;
}

function bestOf(waiting: readonly Waiting[]) {
  let best = 0;
  let bestScore = -1;
  for (const [index, { one, likeness, repeats }] of waiting.entries()) {
    // The list is sorted by score, so nothing further down can win.
    if (one.score <= bestScore) break;
    const score = one.score * (1 - RANKING.similar * likeness) * RANKING.sameRecord ** repeats;
    if (score <= bestScore) continue;
    best = index;
    bestScore = score;
  }
  return { best, bestScore };
}

interface Comparing {
  readonly change: typeof RANKING.change;
  readonly likeness: Likeness;
}

/** Returns the index of the latest statement on the subject of `waiting[best]` with nearly its score, else `best`. */
function latestOf(
  waiting: readonly Waiting[],
  best: number,
  { change, likeness }: Comparing,
): number {
  const first = waiting[best];
  if (first === undefined) return best;
  let latest = best;
  let at = first.one.candidate.at;
  for (const [index, { one, words }] of waiting.entries()) {
    if (one.score < change.nearlyAsGood * first.one.score) break;
    const { role, at: saidAt } = one.candidate;
    const outranks = saidAt > at && (role === 'user' || first.one.candidate.role === 'assistant');
    if (!outranks) continue;
    if (likeness.of(words) < change.sameThing) continue;
    latest = index;
    at = saidAt;
  }
  return latest;
}

/** Distinct words of a passage, as numbers. */
type Words = readonly number[];

/**
 * Computes how similar passages are to a given one: shared words divided by all words (Jaccard). Every candidate is
 * compared with every chosen one, so words are numbers here: comparing numbers takes a tenth of the time.
 */
class Likeness {
  readonly #numbers = new Map<string, number>();
  /** For each word number: in which call of read() or mark() the word last occurred. `#mark` counts the calls. */
  readonly #marks: number[] = [];
  #mark = 0;
  /** The number of words in the passage of the last mark(). */
  #marked = 0;

  /** Returns the numbers of a passage's words, each once. */
  read(terms: readonly string[]): Words {
    this.#mark += 1;
    const words: number[] = [];
    for (const term of terms) {
      const number = this.#numbers.get(term) ?? this.#numbers.size;
      this.#numbers.set(term, number);
      if (this.#marks[number] === this.#mark) continue;
      this.#marks[number] = this.#mark;
      words.push(number);
    }
    return words;
  }

  /** Sets the passage with which of() compares. */
  mark(words: Words): void {
    this.#mark += 1;
    this.#marked = words.length;
    for (const word of words) this.#marks[word] = this.#mark;
  }

  /** Returns the similarity to the passage of the last mark(), from 0 to 1. */
  of(words: Words): number {
    let shared = 0;
    for (const word of words) if (this.#marks[word] === this.#mark) shared += 1;
    return shared === 0 ? 0 : shared / (this.#marked + words.length - shared);
  }
}
