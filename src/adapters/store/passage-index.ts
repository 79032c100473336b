import { cutPassages } from '../../core/recall/passages.ts';
import { RULE_TERM, saysRules } from '../../core/recall/rules.ts';
import { termsOf } from '../../core/recall/terms.ts';
import type { Database } from './database.ts';
import { PASSAGES_PER_SPACE, POSITIONS_PER_EXCHANGE } from './schema.ts';

/** Adds texts to the full-text index and removes them. It also keeps the counts in the table `spaces`. */

/** A passage and the terms by which it is found. */
export interface IndexedPassage extends Span {
  readonly terms: readonly string[];
}

export interface IndexedText {
  /** The passages, as `passagesOf` returns them. */
  readonly passages: readonly IndexedPassage[];
  readonly role: 'user' | 'assistant';
  readonly conversation: string;
  /** The number of the exchange in its conversation, from 0. */
  readonly exchange: number;
  readonly source?: 'unverified';
}

/** The ids of a text's rows in the tables `spaces` and `records`. */
export interface IndexedPlace {
  readonly space: number;
  readonly record: number;
}

/** The place of a passage in its text, in UTF-16 units; `end` is exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Cuts a text into passages and finds their terms. That is nine tenths of the work of a capture, about 1 ms per kB, so
 * call it before the transaction begins: other processes wait for the transaction.
 */
export function passagesOf(text: string, role: 'user' | 'assistant'): readonly IndexedPassage[] {
  const passages = Array.from(cutPassages(text), ({ start, end }) => ({
    start,
    end,
    terms: termsOf(text.slice(start, end)),
  }));
  if (role === 'user' && saysRules(text)) passages[0]?.terms.push(RULE_TERM);
  return passages;
}

export type AddText = (text: IndexedText, ids: IndexedPlace) => void;

const INDEX = `INSERT INTO passage_terms (rowid, terms)
  SELECT id, terms FROM passages WHERE id >= ? AND id < ?`;

export class PassageIndex {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Runs `work`, which adds texts, and then indexes all of them by one statement for each space. Call it in the
   * transaction in which `work` inserts the records. Inserts into the index between other statements would make FTS5
   * write a segment for each, and every later search would read all segments.
   */
  adding<T>(work: (add: AddText) => T): T {
    const grown = new Map<number, readonly [number, number]>();
    const done = work((text, ids) => {
      const { first, next } = this.#addPassages(text, ids);
      grown.set(ids.space, [grown.get(ids.space)?.[0] ?? first, next]);
    });
    for (const [first, next] of grown.values()) this.#database.run(INDEX, first, next);
    return done;
  }

  /** Removes a record from the index. Call it in the transaction that deletes the record, before the deletion. */
  remove(ids: IndexedPlace): void {
    const passages = this.#database.all<{ id: number; terms: string }>(
      'SELECT id, terms FROM passages WHERE record = ?',
      ids.record,
    );
    let termCount = 0;
    for (const { id, terms } of passages) {
      this.#database.run(
        "INSERT INTO passage_terms (passage_terms, rowid, terms) VALUES ('delete', ?, ?)",
        id,
        terms,
      );
      if (terms !== '') termCount += terms.split(' ').length;
    }
    this.#database.run('DELETE FROM passages WHERE record = ?', ids.record);
    this.#database.run(
      'UPDATE spaces SET passages = passages - ?, terms = terms - ? WHERE id = ?',
      passages.length,
      termCount,
      ids.space,
    );
  }

  #addPassages(record: IndexedText, ids: IndexedPlace): { first: number; next: number } {
    const conversation = this.#conversationId(ids.space, record.conversation);
    const next = this.#database.get<{ next: number }>(
      'SELECT next FROM spaces WHERE id = ?',
      ids.space,
    );
    const place = record.exchange + shareOf(record);
    const firstId = ids.space * PASSAGES_PER_SPACE + (next?.next ?? 1);
    const count = record.passages.length;
    let termCount = 0;
    for (const [at, { start, end, terms }] of record.passages.entries()) {
      this.#database.run(
        'INSERT INTO passages (id, record, conversation, position, start, end, terms) VALUES (?, ?, ?, ?, ?, ?, ?)',
        firstId + at,
        ids.record,
        conversation,
        place * POSITIONS_PER_EXCHANGE + at,
        start,
        end,
        terms.join(' '),
      );
      termCount += terms.length;
    }
    this.#database.run(
      'UPDATE spaces SET passages = passages + ?, terms = terms + ?, next = next + ? WHERE id = ?',
      count,
      termCount,
      count,
      ids.space,
    );
    return { first: firstId, next: firstId + count };
  }

  #conversationId(space: number, key: string): number {
    const sql = 'SELECT id FROM conversations WHERE space = ? AND key = ?';
    this.#database.run(
      'INSERT OR IGNORE INTO conversations (space, key) VALUES (?, ?)',
      space,
      key,
    );
    return this.#database.get<{ id: number }>(sql, space, key)?.id ?? 0;
  }
}

/** Returns the share of an exchange's positions that come before those of a text; see POSITIONS_PER_EXCHANGE. */
export function shareOf({ role, source }: Pick<IndexedText, 'role' | 'source'>): number {
  if (role === 'assistant') return 0.75;
  return source === 'unverified' ? 0.5 : 0;
}
