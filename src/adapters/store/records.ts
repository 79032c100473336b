import { cutPassages } from '../../core/passages.ts';
import { isDigest, referenceOf } from '../../core/reference.ts';
import { termsOf } from '../../core/terms.ts';
import type {
  CaptureState,
  ForgetFilter,
  ListFilter,
  MemoryRecord,
  RecordKey,
  StoredRecord,
} from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { PASSAGES_PER_SPACE, POSITIONS_PER_EXCHANGE, SPACES_MAX } from './schema.ts';
import { bytesOf, type StoredText, textOf } from './text.ts';

/** Records in and out of the database. Everything here names a space, or says that it means all. */

/** A longer text is a pasted file: indexing it would hold up recall for a second. */
export const RECORD_CHARS_MAX = 512 * 1024;
/** Conversation keys, clients and branches are names, not texts. */
const NAME_CHARS_MAX = 1024;
const LIST_LIMIT_MAX = 1000;
/** More words than anyone types; each one is a query. */
const LIST_WORDS_MAX = 32;
const LIST_CHARS_MAX = 4096;
/** Records a transaction, so that another process can write in between: about 100 ms. */
const FORGET_BATCH = 256;

interface RecordRow extends Omit<StoredRecord, 'branch' | 'text'>, StoredText {
  readonly branch: string | null;
}

const RECORD_COLUMNS = `r.digest, s.name AS space, r.role, r.text, r.is_utf16, r.conversation, r.client, r.at,
  r.fingerprint, r.exchange, r.branch, r.ref`;
const RECORDS = 'FROM records r JOIN spaces s ON s.id = r.space';

export class Records {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  capture(records: readonly MemoryRecord[]): CaptureState[] {
    return this.#database.transaction(() => records.map((record) => this.#captureOne(record)));
  }

  retrieve(key: RecordKey): StoredRecord | undefined {
    const row =
      'ref' in key
        ? this.#database.get<RecordRow>(
            `SELECT ${RECORD_COLUMNS} ${RECORDS} WHERE r.ref = ? ORDER BY r.id LIMIT 1`,
            key.ref,
          )
        : this.#database.get<RecordRow>(
            `SELECT ${RECORD_COLUMNS} ${RECORDS} WHERE s.name = ? AND r.digest = ?`,
            key.space,
            key.digest,
          );
    return row === undefined ? undefined : storedRecord(row);
  }

  /** Every word must occur in the record; with words best first, without them newest first. */
  list(filter: ListFilter): StoredRecord[] {
    const { where, values } = whereOf(filter);
    const limit = Math.max(0, Math.min(filter.limit, LIST_LIMIT_MAX));
    const terms = listTerms(filter.words ?? '');
    const byRank = terms.length > 0;
    return this.#database
      .all<RecordRow>(
        `SELECT ${RECORD_COLUMNS} ${RECORDS} ${byRank ? bestPassage(terms) : ''} ${where}
         ORDER BY ${byRank ? 'best.words DESC, ' : ''}r.at DESC, r.id DESC LIMIT ? OFFSET ?`,
        ...terms.map(quoted),
        ...values,
        limit,
        Math.max(0, filter.offset ?? 0),
      )
      .map(storedRecord);
  }

  /**
   * Leaves tombstones and no trace of the words: neither in the tables nor in the write-ahead log.
   * `leavesTraces`: something else was taken out just now, and must leave the log too.
   */
  forget(filter: ForgetFilter, at: number, leavesTraces = false): number {
    const { where, values } = whereOf(filter);
    let forgotten = 0;
    for (;;) {
      const batch = this.#database.transaction(() => {
        const rows = this.#database.all<{ id: number; space: number; digest: string }>(
          `SELECT r.id, r.space, r.digest ${RECORDS} ${where} LIMIT ${FORGET_BATCH}`,
          ...values,
        );
        for (const row of rows) this.#forgetOne(row, at);
        return rows.length;
      });
      forgotten += batch;
      if (batch < FORGET_BATCH) break;
    }
    if (forgotten > 0 || leavesTraces) this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    return forgotten;
  }

  #captureOne(record: MemoryRecord): CaptureState {
    if (!isStorable(record)) return 'rejected';
    const space = spaceId(this.#database, record.space);
    if (space === undefined) return 'rejected';
    if (this.#has('tombstones', space, record.digest)) return 'forgotten';
    if (this.#has('records', space, record.digest)) return 'duplicate';
    const { text, is_utf16: isUtf16 } = bytesOf(record.text);
    const row = this.#database.get<{ id: number }>(
      `INSERT INTO records
        (space, digest, ref, role, text, is_utf16, conversation, client, at, fingerprint, exchange, branch)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      space,
      record.digest,
      referenceOf(record.digest),
      record.role,
      text,
      isUtf16,
      record.conversation,
      record.client,
      record.at,
      record.fingerprint,
      record.exchange,
      record.branch ?? null,
    );
    if (row !== undefined) this.#indexOne(record, { space, record: row.id });
    return 'stored';
  }

  #has(table: 'records' | 'tombstones', space: number, digest: string): boolean {
    const sql = `SELECT 1 AS found FROM ${table} WHERE space = ? AND digest = ?`;
    return this.#database.get(sql, space, digest) !== undefined;
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

  #indexOne(record: MemoryRecord, ids: { space: number; record: number }): void {
    const conversation = this.#conversationId(ids.space, record.conversation);
    const next = this.#database.get<{ next: number }>(
      'SELECT next FROM spaces WHERE id = ?',
      ids.space,
    );
    const place = record.exchange + (record.role === 'assistant' ? 0.5 : 0);
    let id = ids.space * PASSAGES_PER_SPACE + (next?.next ?? 1);
    let count = 0;
    let termCount = 0;
    for (const { start, end } of cutPassages(record.text)) {
      const terms = termsOf(record.text.slice(start, end));
      const text = terms.join(' ');
      this.#database.run(
        'INSERT INTO passages (id, record, conversation, position, start, end, terms) VALUES (?, ?, ?, ?, ?, ?, ?)',
        id,
        ids.record,
        conversation,
        place * POSITIONS_PER_EXCHANGE + count,
        start,
        end,
        text,
      );
      this.#database.run('INSERT INTO passage_terms (rowid, terms) VALUES (?, ?)', id, text);
      id += 1;
      count += 1;
      termCount += terms.length;
    }
    this.#database.run(
      'UPDATE spaces SET passages = passages + ?, terms = terms + ?, next = next + ? WHERE id = ?',
      count,
      termCount,
      count,
      ids.space,
    );
  }

  #forgetOne(row: { id: number; space: number; digest: string }, at: number): void {
    const passages = this.#database.all<{ id: number; terms: string }>(
      'SELECT id, terms FROM passages WHERE record = ?',
      row.id,
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
    this.#database.run('DELETE FROM passages WHERE record = ?', row.id);
    this.#database.run('DELETE FROM records WHERE id = ?', row.id);
    this.#database.run(
      'INSERT OR IGNORE INTO tombstones (space, digest, at) VALUES (?, ?, ?)',
      row.space,
      row.digest,
      at,
    );
    this.#database.run(
      'UPDATE spaces SET passages = passages - ?, terms = terms - ? WHERE id = ?',
      passages.length,
      termCount,
      row.space,
    );
  }
}

/** The space's id, given to it here if it is new; undefined when there are too many. */
export function spaceId(database: Database, name: string): number | undefined {
  const known = database.get<{ id: number }>('SELECT id FROM spaces WHERE name = ?', name);
  if (known !== undefined) return known.id;
  const made = database.get<{ id: number }>(
    'INSERT INTO spaces (name) SELECT ? WHERE (SELECT count(*) FROM spaces) < ? RETURNING id',
    name,
    SPACES_MAX - 1,
  );
  return made?.id;
}

function isStorable(record: MemoryRecord): boolean {
  return (
    isDigest(record.digest) &&
    (record.role === 'user' || record.role === 'assistant') &&
    record.text.trim() !== '' &&
    record.text.length <= RECORD_CHARS_MAX &&
    isName(record.space) &&
    isName(record.conversation) &&
    Number.isSafeInteger(record.exchange) &&
    record.exchange >= 0 &&
    record.exchange < 2 ** 32 &&
    Number.isSafeInteger(record.at)
  );
}

export function isName(value: string): boolean {
  return value !== '' && value.length <= NAME_CHARS_MAX && !value.includes('\0');
}

function storedRecord(row: RecordRow): StoredRecord {
  const { branch, text, is_utf16, ...rest } = row;
  const record = { ...rest, text: textOf({ text, is_utf16 }) };
  return branch === null ? record : { ...record, branch };
}

interface Condition {
  readonly where: string;
  readonly values: (string | number)[];
}

// Listing and forgetting share it: what a list shows, forgetting with the same words forgets.
function whereOf(filter: Omit<ListFilter, 'limit'>): Condition {
  const conditions: string[] = [];
  const values: (string | number)[] = [];
  const add = (condition: string, value: string | number | undefined): void => {
    if (value === undefined) return;
    conditions.push(condition);
    values.push(value);
  };
  add('s.name = ?', filter.space);
  add('r.ref IN (SELECT value FROM json_each(?))', filter.refs && JSON.stringify(filter.refs));
  add('r.role = ?', filter.role);
  add('r.conversation = ?', filter.conversation);
  add('r.at >= ?', filter.since);
  add('r.at <= ?', filter.until);
  if (filter.words !== undefined) {
    const terms = listTerms(filter.words);
    // Words that say nothing find nothing: forgetting "the" must not forget all.
    if (terms.length === 0) conditions.push('0');
    for (const term of terms) add(HAS_TERM, quoted(term));
  }
  return { where: conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`, values };
}

const HAS_TERM = `r.id IN (SELECT p.record FROM passage_terms f JOIN passages p ON p.id = f.rowid
  WHERE f.passage_terms MATCH ?)`;

/** How many of the words one passage of a record holds, at best. */
function bestPassage(terms: readonly string[]): string {
  const holders = terms.map(
    () => 'SELECT rowid AS id FROM passage_terms WHERE passage_terms MATCH ?',
  );
  return `JOIN (SELECT record, max(words) AS words FROM (
      SELECT p.record AS record, count(*) AS words FROM (${holders.join(' UNION ALL ')}) h
      JOIN passages p ON p.id = h.id GROUP BY p.id) GROUP BY record) best ON best.record = r.id`;
}

function listTerms(words: string): string[] {
  return [...new Set(termsOf(words.slice(0, LIST_CHARS_MAX)))].slice(0, LIST_WORDS_MAX);
}

// Terms hold word characters only, so the quotes cannot be closed from inside.
function quoted(term: string): string {
  return `"${term}"`;
}
