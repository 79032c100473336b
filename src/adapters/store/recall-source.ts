import type { Span } from '../../core/recall/dates.ts';
import type { RecalledPassage } from '../../ports/memory.ts';
import type { Steps } from './steps.ts';

/**
 * Everything that a recall reads. A database only finds texts and counts words: the order is the
 * core's, so the same memories give the same answer whatever holds them. Every reading names its
 * space, or ids that a reading of a space has given.
 */
export interface RecallSource {
  /** Changes once a text that was read may be gone; undefined: nothing may be remembered. */
  generation(): string | undefined;
  /**
   * Terms whose letters the ranking reads. A source may give any other text for the rest. A source that
   * has all terms with their letters does not ask which these are.
   */
  expectTerms(terms: () => Iterable<string>): void;
  /** In any order; without those that do not exist. */
  spaces(names: readonly string[]): Steps<readonly Space[]>;
  /** By the term's place: in how many passages it is, at most `most`, and in which where it is in fewer. */
  countTerms(space: Space, terms: readonly string[], most: number): Steps<readonly TermCount[]>;
  /** In how many passages a term is, at most `most`. */
  countTerm(space: Space, term: string, most: number): Steps<number>;
  /** By the term's place: the places from `from` on that hold it. */
  placesOf(space: Space, terms: readonly string[], from: number): Steps<readonly Places[]>;
  /** Ids of the passages that the person said in that time, the newest `most`. */
  saidIn(space: Space, span: Span, most: number): Steps<readonly number[]>;
  /** Passages of the records with these digests. */
  passagesOf(space: Space, digests: readonly string[]): Steps<readonly PassageOfRecord[]>;
  /** Passages with up to `most` on each side of the same conversation, in the order of `ids`. */
  windows(ids: readonly number[], most: number): Steps<readonly Window[]>;
  passages(ids: readonly number[]): Steps<readonly Passage[]>;
  /** When these records were said: one time each, 0 for one that is gone. */
  timesOf(records: readonly number[]): Steps<readonly number[]>;
  texts(ids: readonly number[]): Steps<ReadonlyMap<number, Omit<RecalledPassage, 'score'>>>;
  /** Exchanges that hold these passages, in the passages' order, at most `most`. */
  exchangesOf(ids: readonly number[], most: number): Steps<readonly ExchangePlace[]>;
  readExchanges(places: readonly ExchangePlace[]): Steps<readonly ExchangeParts[]>;
  readRecords(records: readonly number[]): Steps<readonly SpokenText[]>;
  /** Sessions of the newest `most` records, the newest first, at most `sessionsMost`. */
  sessions(space: Space, most: number, sessionsMost: number): Steps<readonly Session[]>;
  /** By the term's place: conversations whose newest passages hold it; `most` passages are looked at. */
  holders(
    space: Space,
    terms: readonly string[],
    most: number,
  ): Steps<readonly (readonly number[])[]>;
  /** The first passages of a conversation. */
  opening(conversation: number, most: number): Steps<readonly number[]>;
  /** Whole texts of a person's of which a passage has the term, the newest first. */
  saidWith(space: Space, term: string, most: number): Steps<readonly SaidText[]>;
}

export interface Space {
  readonly id: number;
  readonly name: string;
  readonly passages: number;
  readonly terms: number;
  /** The number that its next passage gets. */
  readonly next: number;
}

/** Numbers of passages, counted from the first of the space. */
export type Places = Uint32Array;

/** From a database's list: "3,17,256". */
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
  /** The record's. */
  readonly digest: string;
  readonly record: number;
  readonly passage: number;
}

/** A passage that was found, and the ids of those around it, itself among them, as they were said. */
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
  /** The newest of the records that were found in it. */
  readonly record: number;
}

export interface ExchangeParts extends Omit<ExchangePlace, 'record'> {
  /** The time of that record. */
  readonly at: number;
  readonly branch: string | null;
  /** As they were said. */
  readonly parts: readonly ExchangePart[];
}

export interface ExchangePart {
  readonly speaker: 'person' | 'unverified' | 'answer';
  readonly record: number;
  readonly chars: number;
  readonly terms: readonly string[];
}

export interface SpokenText {
  readonly id: number;
  readonly source: 'unverified' | null;
  readonly role: 'user' | 'assistant';
  readonly ref: string;
  readonly space: string;
  readonly client: string;
  readonly at: number;
  readonly text: string;
  /** Where it comes from; null where that is not known. */
  readonly root: string | null;
  readonly files: string | null;
}

export interface Session {
  readonly conversation: number;
  readonly key: string;
  readonly at: number;
  /** With commas between them. */
  readonly branches: string;
}

/** A whole text, as it was said. */
export type SaidText = Omit<RecalledPassage, 'score' | 'source'>;
