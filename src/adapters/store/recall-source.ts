import type { Span } from '../../core/recall/dates.ts';
import type { RecalledPassage, SpokenRecord } from '../../ports/memory.ts';
import type { Steps } from './steps.ts';

/**
 * Reads from a database for a recall. A database only finds texts and counts words. The core ranks them, so the same
 * memories give the same answer with any database. Apart from the first three, every method takes a space that spaces()
 * has returned, or ids of rows in such a space.
 */
export interface RecallSource {
  /**
   * Returns a value that changes once a text that was read may be deleted; undefined: do not cache. It stays the same
   * if only the time of a text is updated.
   */
  generation(): string | undefined;
  /**
   * Announces the terms whose spelling the ranking compares. If a source stores only hashes of terms, its passages have
   * the announced terms as they are, and may have any text instead of another term. A source that stores the terms
   * themselves does not call `terms`.
   */
  expectTerms(terms: () => Iterable<string>): void;
  /** Returns the spaces that exist, in any order. */
  spaces(names: readonly string[]): Steps<readonly Space[]>;
  /**
   * Returns for each term, in order, the number of its passages, at most `most`; if there are fewer, also their
   * numbers.
   */
  countTerms(space: Space, terms: readonly string[], most: number): Steps<readonly TermCount[]>;
  /** Returns how many passages have a term, at most `most`. */
  countTerm(space: Space, term: string, most: number): Steps<number>;
  /** Returns for each term, in order, the numbers of its passages from the number `from` on. */
  placesOf(space: Space, terms: readonly string[], from: number): Steps<readonly Places[]>;
  /** Returns ids of passages of texts with the role 'user' from within `span`, the newest `most`. */
  saidIn(space: Space, span: Span, most: number): Steps<readonly number[]>;
  /** Returns the passages of the records with these digests. */
  passagesOf(space: Space, digests: readonly string[]): Steps<readonly PassageOfRecord[]>;
  /** Returns passages with up to `most` neighbours on each side in the same conversation, in order of `ids`. */
  windows(ids: readonly number[], most: number): Steps<readonly Window[]>;
  passages(ids: readonly number[]): Steps<readonly Passage[]>;
  /** Returns the times of these records; 0 for a deleted record. */
  timesOf(records: readonly number[]): Steps<readonly number[]>;
  texts(ids: readonly number[]): Steps<ReadonlyMap<number, Omit<RecalledPassage, 'score'>>>;
  /** Returns the exchanges with these passages, in the passages' order, at most `most`. */
  exchangesOf(ids: readonly number[], most: number): Steps<readonly ExchangePlace[]>;
  readExchanges(places: readonly ExchangePlace[]): Steps<readonly ExchangeParts[]>;
  readRecords(records: readonly number[]): Steps<readonly SpokenText[]>;
  /**
   * Returns the sessions that have the newest `most` records, newest first, at most `sessionsMost`. A session whose
   * records among these are all unverified is left out.
   */
  sessions(space: Space, most: number, sessionsMost: number): Steps<readonly Session[]>;
  /**
   * Returns for each term, in order, the conversations of its newest passages. Passages of unverified texts do not
   * count.
   */
  holders(
    space: Space,
    terms: readonly string[],
    limits: HolderLimits,
  ): Steps<readonly (readonly number[])[]>;
  /** Returns ids of the first passages of a conversation, at most `most`. */
  opening(conversation: number, most: number): Steps<readonly number[]>;
  /** Returns ids of the last passages of a conversation, the last one first, at most `most`. */
  closing(conversation: number, most: number): Steps<readonly number[]>;
  /**
   * Returns the user's whole texts, except unverified ones, of which one of the newest SAID_WITH_LOOKED_MAX passages
   * with the term is a part: newest first, at most `most`.
   */
  saidWith(space: Space, term: string, most: number): Steps<readonly SaidText[]>;
}

export interface HolderLimits {
  /** Bound on the passages of each term, newest first. */
  readonly most: number;
  /** Bound on the space's newest passages that are searched for the terms. */
  readonly among: number;
}

export interface Space {
  readonly id: number;
  readonly name: string;
  /** The number of its passages, and the number of all their terms. */
  readonly passages: number;
  readonly terms: number;
  /** The number that its next passage will get. */
  readonly next: number;
}

/** Numbers of passages in their space. Each passage of a space gets the next number; see PASSAGES_PER_SPACE. */
export type Places = Uint32Array;

/** Parses a list of numbers that a database returns as text: "3,17,256". */
export function placesFrom(list: string): Places {
  if (list === '') return NO_PLACES;
  const places = new Uint32Array(list.length);
  let count = 0;
  let number = 0;
  for (let at = 0; at < list.length; at += 1) {
    const code = list.charCodeAt(at);
    if (code !== COMMA) number = number * 10 + code - DIGIT_0;
    else {
      places[count] = number;
      count += 1;
      number = 0;
    }
  }
  places[count] = number;
  return places.slice(0, count + 1);
}

export const NO_PLACES: Places = new Uint32Array(0);
const COMMA = 44;
const DIGIT_0 = 48;

export interface TermCount {
  readonly found: number;
  readonly places: Places;
}

export interface PassageOfRecord {
  readonly digest: string;
  readonly record: number;
  readonly passage: number;
}

/** The id of a passage, and in `around` the ids of the passage and its neighbours, in order. */
export interface Window {
  readonly id: number;
  readonly around: readonly number[];
}

export interface Passage {
  readonly id: number;
  readonly record: number;
  readonly position: number;
  readonly chars: number;
  readonly terms: readonly string[];
}

export interface ExchangePlace {
  readonly conversation: number;
  readonly exchange: number;
  /** The id of the exchange's newest record that has one of the passages given to exchangesOf(). */
  readonly record: number;
  readonly at: number;
}

export interface ExchangeParts extends Omit<ExchangePlace, 'record' | 'at'> {
  readonly branch: string | null;
  /** The passages in their order in the conversation, at most PASSAGES_PER_RECORD of each speaker. */
  readonly parts: readonly ExchangePart[];
}

export interface ExchangePart {
  readonly speaker: 'person' | 'unverified' | 'answer';
  readonly record: number;
  readonly chars: number;
  /** The terms, as numbers: see wordNumber. */
  readonly words: readonly number[];
}

export interface SpokenText extends Pick<
  SpokenRecord,
  'role' | 'ref' | 'space' | 'client' | 'at' | 'text'
> {
  readonly id: number;
  readonly source: 'unverified' | null;
  /** Index in `text`, see `lastFrom` in core/memory/record.ts. Null if it is not set. */
  readonly lastFrom: number | null;
  /** The `root` of the exchange's provenance (ports/provenance.ts); null if unknown. */
  readonly root: string | null;
  readonly files: string | null;
}

export interface Session {
  readonly conversation: number;
  readonly key: string;
  readonly at: number;
  /** The branches, separated by commas. */
  readonly branches: string;
}

/** A whole stored text. */
export type SaidText = Omit<RecalledPassage, 'score' | 'source'>;
