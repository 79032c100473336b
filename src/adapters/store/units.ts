import type { Candidate } from '../../core/recall/ranked.ts';
import type { Passage, RecallSource, Window } from './recall-source.ts';
import type { Steps } from './steps.ts';
import { POSITIONS_PER_EXCHANGE } from './schema.ts';

/**
 * A unit of ranking and display: a passage with its neighbours in the conversation. A question and
 * its short answer are one unit: alone, neither says much.
 */

/** Units whose neighbours are candidates too: an answer need not repeat the question's words. */
const NEIGHBOURS_OF = 12;
/** Passages to each side that are read: a unit of two beside a unit of two. */
const SAID_MAX = 4;
/**
 * A question and its answer up to this are one unit. On the even half of LoCoMo 96 finds 0.4 % less in
 * a block and 200 finds 0.9 % less.
 */
const UNIT_TOKENS_MAX = 128;
/** As `passageTokens` counts ASCII; terms are not needed to see that two passages are short. */
const CHARS_PER_TOKEN = 3.6;

export interface Unit extends Candidate {
  /** Ids of its passages, in the order they were said; the first is the unit's own id. */
  readonly passages: readonly number[];
  /** The id of the passage with which its exchange's next record begins; undefined for none. */
  readonly answer: number | undefined;
}

export interface Found {
  /** Ids of passages, best first. */
  readonly ids: readonly number[];
  /** Records of which nothing becomes part of a unit. */
  readonly excluded: ReadonlySet<number>;
}

/**
 * Passages that are remembered, with their terms: about 2 kB each. The questions of a project find the
 * same ones again and again, and reading them again is a fifth of a recall.
 */
const PASSAGES_MAX = 4096;

/** Reads units, and remembers what it read as long as nothing can have been deleted since. */
export class UnitReader {
  readonly #source: RecallSource;
  #generation: string | undefined;
  readonly #passages = new Map<number, Passage>();
  /** When it was said, by record. */
  readonly #times = new Map<number, number>();

  constructor(source: RecallSource) {
    this.#source = source;
  }

  /** Best first, then their neighbours; every passage is in one unit at most. */
  *read({ ids, excluded }: Found): Steps<Unit[]> {
    this.#dropStale();
    const windows = yield* this.#source.windows(ids, SAID_MAX);
    yield* this.#readPassages(windows);
    const maker = new UnitMaker(excluded);
    const beside: (() => void)[] = [];
    for (const [place, { id, around }] of windows.entries()) {
      const own = this.#passages.get(id);
      if (own === undefined || !maker.isFree(own)) continue;
      const said = around.flatMap((one) => this.#passages.get(one) ?? []);
      const { first, last } = maker.makeAt(said, said.indexOf(own));
      if (place >= NEIGHBOURS_OF) continue;
      beside.push(() => maker.makeBeside(said, first - 1));
      beside.push(() => maker.makeBeside(said, last + 1));
    }
    for (const make of beside) make();
    return yield* this.#withTimes(maker.drafts);
  }

  #dropStale(): void {
    const generation = this.#source.generation();
    const isFull = this.#passages.size > PASSAGES_MAX || this.#times.size > PASSAGES_MAX;
    if (generation !== undefined && generation === this.#generation && !isFull) return;
    this.#generation = generation;
    this.#passages.clear();
    this.#times.clear();
  }

  *#readPassages(windows: readonly Window[]): Steps<void> {
    const ids = new Set<number>();
    for (const { around } of windows) {
      for (const id of around) if (!this.#passages.has(id)) ids.add(id);
    }
    if (ids.size === 0) return;
    const passages = yield* this.#source.passages([...ids]);
    for (const passage of passages) this.#passages.set(passage.id, passage);
  }

  *#withTimes(drafts: readonly Draft[]): Steps<Unit[]> {
    const records = [...new Set(drafts.map(({ record }) => record))];
    const unknown = records.filter((record) => !this.#times.has(record));
    if (unknown.length > 0) {
      const times = yield* this.#source.timesOf(unknown);
      for (const [place, record] of unknown.entries()) this.#times.set(record, times[place] ?? 0);
    }
    return drafts.map((draft) => ({ ...draft, at: this.#times.get(draft.record) ?? 0 }));
  }
}

type Draft = Omit<Unit, 'at'>;

interface Around extends Pick<Unit, 'answer' | 'earlier' | 'previous' | 'next' | 'later'> {
  /** Whether it has neighbouring passages from the same answer. */
  readonly isOfLongAnswer: (passage: Passage) => boolean;
}

class UnitMaker {
  readonly #excluded: ReadonlySet<number>;
  readonly #drafts: Draft[] = [];
  readonly #taken = new Set<number>();
  /** Terms of a passage joined with its second one, by the first's id: one list for all units. */
  readonly #joined = new Map<number, readonly string[]>();

  constructor(excluded: ReadonlySet<number>) {
    this.#excluded = excluded;
  }

  get drafts(): readonly Draft[] {
    return this.#drafts;
  }

  makeBeside(said: readonly Passage[], at: number): void {
    const passage = said[at];
    if (passage !== undefined && this.isFree(passage)) this.makeAt(said, at);
  }

  /** Where the unit that it made begins and ends. */
  makeAt(said: readonly Passage[], at: number): Range {
    const { first, last } = rangeAt(said, at);
    const isWhole = said.slice(first, last + 1).every((one) => this.isFree(one));
    const range = isWhole ? { first, last } : { first: at, last: at };
    const before = rangeAt(said, range.first - 1);
    const after = rangeAt(said, range.last + 1);
    this.#add(said.slice(range.first, range.last + 1), {
      isOfLongAnswer: (passage) =>
        !isUsers(passage) && said.some((one) => one !== passage && one.record === passage.record),
      answer: this.#answerTo(said, range.last),
      earlier: this.#termsAt(said, before.first - 1),
      previous: this.#termsAt(said, range.first - 1),
      next: this.#termsAt(said, range.last + 1),
      later: this.#termsAt(said, after.last + 1),
    });
    return range;
  }

  isFree({ id, record }: Passage): boolean {
    return !this.#taken.has(id) && !this.#excluded.has(record);
  }

  #add(parts: readonly Passage[], { isOfLongAnswer, ...around }: Around): void {
    const [first] = parts;
    if (first === undefined) return;
    const { id, record } = first;
    const passages = parts.map((part) => part.id);
    for (const passage of passages) this.#taken.add(passage);
    this.#drafts.push({
      id,
      record,
      passages,
      role: parts.some(isUsers) ? 'user' : 'assistant',
      isOfLongAnswer: parts.some(isOfLongAnswer),
      terms: this.#termsOf(parts),
      parts: parts.map((part) => ({
        role: isUsers(part) ? 'user' : 'assistant',
        isOfLongAnswer: isOfLongAnswer(part),
        terms: part.terms,
      })),
      ...around,
    });
  }

  #answerTo(said: readonly Passage[], at: number): number | undefined {
    const asked = said[at];
    if (asked === undefined) return undefined;
    const next = said.slice(at + 1).find(({ record }) => record !== asked.record);
    if (next === undefined || exchangeOf(next) !== exchangeOf(asked)) return undefined;
    return this.#excluded.has(next.record) ? undefined : next.id;
  }

  #termsAt(said: readonly Passage[], at: number): readonly string[] {
    if (said[at] === undefined) return [];
    const { first, last } = rangeAt(said, at);
    return this.#termsOf(said.slice(first, last + 1));
  }

  #termsOf(parts: readonly Passage[]): readonly string[] {
    const [first, second] = parts;
    if (first === undefined) return [];
    if (second === undefined) return first.terms;
    // One list for all who read it: the ranking counts in it once.
    const known = this.#joined.get(first.id);
    if (known !== undefined) return known;
    const made = first.terms.concat(second.terms);
    this.#joined.set(first.id, made);
    return made;
  }
}

interface Range {
  readonly first: number;
  readonly last: number;
}

/** A passage alone, or with the one that it belongs to, the following before the preceding. */
function rangeAt(said: readonly Passage[], at: number): Range {
  const [previous, passage, next] = [said[at - 1], said[at], said[at + 1]];
  if (passage === undefined) return { first: at, last: at };
  if (next !== undefined && belong(passage, next)) return { first: at, last: at + 1 };
  if (previous !== undefined && belong(previous, passage)) return { first: at - 1, last: at };
  return { first: at, last: at };
}

function belong(one: Passage, other: Passage): boolean {
  return (
    exchangeOf(one) === exchangeOf(other) &&
    one.record !== other.record &&
    one.chars + other.chars <= UNIT_TOKENS_MAX * CHARS_PER_TOKEN
  );
}

function exchangeOf({ position }: Passage): number {
  return Math.floor(position / POSITIONS_PER_EXCHANGE);
}

/** The question has the first half of its exchange's positions, the answer the second. */
function isUsers({ position }: Passage): boolean {
  return position % POSITIONS_PER_EXCHANGE < POSITIONS_PER_EXCHANGE / 2;
}
