import { textBytes } from '../../core/memory-api/canonical.ts';
import { isStorable, type Pin, type RuleMark } from '../../core/memory/record.ts';
import { isShortReference, referenceOf } from '../../core/memory/reference.ts';
import { rulesIn } from '../../core/recall/rules.ts';
import { termsOf } from '../../core/recall/terms.ts';
import {
  type CaptureState,
  type ForgetFilter,
  type ListFilter,
  type MemoryRecord,
  type PageFilter,
  type RecordKey,
  type RecordPage,
  type SpeakerRole,
  type SpokenRecord,
  REFERENCES_MAX,
} from '../../ports/memory.ts';
import { bytesOf, Conditions, decoded, type StoredText, textOf } from './driver.ts';
import type { Database } from './database.ts';
import { type AddText, type IndexedPassage, PassageIndex, passagesOf } from './passage-index.ts';
import { noteForgetting } from './forgetting.ts';
import type { Holder, StoredBytes } from './possessions.ts';
import {
  marksOf,
  NO_MARKS,
  ruleDigest,
  type RuleMarks,
  STRONGER_RULE_MARK,
} from './recall-marks.ts';
import { SPACES_MAX } from './schema.ts';

/** Writes, reads, lists and forgets records: the stored texts of users and assistants. */

const LIST_LIMIT_MAX = 1000;
/** Bound on the words of a search, each of which is a query: more than anyone types. Further words do not count. */
const LIST_WORDS_MAX = 32;
const LIST_CHARS_MAX = 4096;
/** Records that are deleted in one transaction, in about 100 ms, so that another process can write in between. */
const FORGET_BATCH = 256;

export interface RecordRow
  extends Omit<SpokenRecord, 'branch' | 'source' | 'lastFrom' | 'text'>, StoredText {
  readonly branch: string | null;
  readonly last_from: number | null;
  readonly source: 'unverified' | null;
}

interface PageRow extends RecordRow {
  readonly id: number;
  readonly space_id: number;
  readonly pin: Pin | null;
  readonly edited_at: number | null;
}

export const RECORD_COLUMNS = `r.digest, s.name AS space, r.role, r.text, r.is_utf16, r.conversation, r.client, r.at,
  r.fingerprint, r.exchange, r.branch, r.source, r.last_from, r.ref`;
const RECORDS = 'FROM records r JOIN spaces s ON s.id = r.space';

export class Records implements Holder {
  readonly #database: Database;
  readonly #index: PassageIndex;
  readonly #beside: () => void;

  /** `beside`: called in the transaction of each capture, so that it can write without a transaction of its own. */
  constructor(database: Database, beside: () => void = () => undefined) {
    this.#database = database;
    this.#index = new PassageIndex(database);
    this.#beside = beside;
  }

  capture(records: readonly MemoryRecord<SpeakerRole>[]): CaptureState[] {
    const prepared = records.map((record) => this.#prepare(record));
    return this.#database.transaction(() => {
      this.#beside();
      return this.#index.adding((add) => prepared.map((one) => this.#captureOne(one, add)));
    });
  }

  /** Does the part of a capture that needs no lock. */
  #prepare(record: MemoryRecord<SpeakerRole>): Prepared {
    const isWanted = isStorable(record) && !this.#isHeld(record);
    return { record, passages: isWanted ? passagesOf(record.text, record.role) : undefined };
  }

  #isHeld({ space, digest }: MemoryRecord): boolean {
    const sql = `SELECT 1 AS found ${RECORDS} WHERE s.name = ? AND r.digest = ?`;
    return this.#database.get(sql, space, digest) !== undefined;
  }

  bytesOf(space: string, digests: readonly string[]): StoredBytes[] {
    const rows = this.#database.all<Pick<RecordRow, 'digest' | 'role'> & StoredText>(
      `SELECT r.digest, r.role, r.text, r.is_utf16 ${RECORDS}
       WHERE s.name = ? AND r.digest IN (SELECT value FROM json_each(?))`,
      space,
      JSON.stringify(digests),
    );
    return rows.flatMap(({ digest, role, ...stored }) => {
      const bytes = textBytes(role, textOf(stored));
      return bytes === undefined ? [] : [{ digest, bytes }];
    });
  }

  retrieve(key: RecordKey): SpokenRecord | undefined {
    const row =
      'ref' in key
        ? this.#byReference(key.ref)
        : this.#database.get<RecordRow>(
            `SELECT ${RECORD_COLUMNS} ${RECORDS} WHERE s.name = ? AND r.digest = ?`,
            key.space,
            key.digest,
          );
    return row === undefined ? undefined : storedRecord(row);
  }

  /**
   * Finds a record by its reference or by a prefix of it; undefined if `ref` fits no reference or more than one. If
   * several spaces have the reference, returns the record that was stored first.
   */
  #byReference(ref: string): RecordRow | undefined {
    // The brace sorts after all characters of a reference.
    const last = isShortReference(ref) ? `${ref}{` : ref;
    const [only, other] = this.#database.all<{ readonly ref: string }>(
      'SELECT DISTINCT ref FROM records WHERE ref >= ? AND ref <= ? LIMIT 2',
      ref,
      last,
    );
    if (only === undefined || other !== undefined) return undefined;
    return this.#database.get<RecordRow>(
      `SELECT ${RECORD_COLUMNS} ${RECORDS} WHERE r.ref = ? ORDER BY r.id LIMIT 1`,
      only.ref,
    );
  }

  /** Returns a page of records, last stored first. Capturing a record again does not change this order. */
  page({ space, before = Number.MAX_SAFE_INTEGER, limit }: PageFilter): RecordPage {
    const rows = this.#database.all<PageRow>(
      `SELECT r.id, r.space AS space_id, m.pin, m.edited_at, ${RECORD_COLUMNS} ${RECORDS} LEFT JOIN marks m ON m.record = r.id
       WHERE r.id < ? AND (? IS NULL OR s.name = ?) ORDER BY r.id DESC LIMIT ?`,
      before,
      space ?? null,
      space ?? null,
      Math.max(0, Math.min(limit, LIST_LIMIT_MAX)),
    );
    const spaces = [...new Set(rows.map(({ space_id: id }) => id))];
    const marks = new Map(spaces.map((id) => [id, marksOf(this.#database).rules([{ id }])]));
    const records = rows.map((found) => {
      const { id: _, space_id: spaceIn, pin, edited_at: editedAt, ...row } = found;
      const record = storedRecord(row);
      const rules = markedRules(record, marks.get(spaceIn) ?? NO_MARKS);
      return {
        ...record,
        ...(pin === null ? {} : { pin }),
        ...(editedAt === null ? {} : { editedAt }),
        ...(rules.length === 0 ? {} : { rules: Object.fromEntries(rules) }),
      };
    });
    return { records, next: rows.at(-1)?.id };
  }

  /** Lists records. With words it lists records that contain all of them, best first; else the newest first. */
  list(filter: ListFilter): SpokenRecord[] {
    const { where, values } = whereOf(filter);
    const limit = Math.max(0, Math.min(filter.limit, LIST_LIMIT_MAX));
    const terms = listTerms(filter.words ?? '');
    const byRank = terms.length > 0;
    return this.#database
      .all<RecordRow>(
        `SELECT ${RECORD_COLUMNS} ${RECORDS} ${byRank ? bestPassage(terms) : ''} ${where}
         ORDER BY ${byRank ? 'best.words DESC, ' : ''}${newestFirst(filter)} LIMIT ? OFFSET ?`,
        ...terms.map(quoted),
        ...values,
        limit,
        Math.max(0, filter.offset ?? 0),
      )
      .map(storedRecord);
  }

  /** Marks records, which forgetSome() then deletes, in this or another process. Returns how many it has marked. */
  beginForget(filter: ForgetFilter): number {
    const { where, values } = whereOf(filter);
    return this.#database.run(
      `INSERT OR IGNORE INTO to_forget SELECT r.id ${RECORDS} ${where}`,
      ...values,
    );
  }

  /**
   * Deletes some of the marked records, and leaves tombstones and notes (forgetting.ts). Returns their number; 0 if
   * none is left. Unused bytes of the files contain the texts until `eraseForgotten`.
   */
  forgetSome(at: number): number {
    return this.#database.transaction(() => {
      const rows = this.#database.all<ForgottenRow>(
        `SELECT r.id, r.space, r.digest, r.ref
         FROM to_forget f JOIN records r ON r.id = f.record LIMIT ${FORGET_BATCH}`,
      );
      for (const row of rows) this.#forgetOne(row, at);
      if (rows.length > 0) {
        noteForgetting(
          this.#database,
          rows.map(({ ref }) => ref),
        );
      }
      return rows.length;
    });
  }

  /** Writes tombstones for captures that are in the outbox and not stored. Returns the number of new tombstones. */
  bury(records: readonly Pick<MemoryRecord, 'space' | 'digest'>[], at: number): number {
    return this.#database.transaction(() => {
      let buried = 0;
      for (const { space: name, digest } of records) {
        const space = spaceId(this.#database, name);
        if (space === undefined || this.#has('records', space, digest)) continue;
        buried += this.#database.run(
          'INSERT OR IGNORE INTO tombstones (space, digest, at) VALUES (?, ?, ?)',
          space,
          digest,
          at,
        );
      }
      if (buried > 0) noteForgetting(this.#database);
      return buried;
    });
  }

  isBuried({ space, digest }: Pick<MemoryRecord, 'space' | 'digest'>): boolean {
    const sql = `SELECT 1 AS found FROM tombstones t JOIN spaces s ON s.id = t.space
      WHERE s.name = ? AND t.digest = ?`;
    return this.#database.get(sql, space, digest) !== undefined;
  }

  #captureOne({ record, passages }: Prepared, add: AddText): CaptureState {
    if (!isStorable(record)) return 'rejected';
    const space = spaceId(this.#database, record.space);
    if (space === undefined) return 'rejected';
    if (this.#has('tombstones', space, record.digest)) return 'forgotten';
    if (this.#has('records', space, record.digest)) {
      sayAgain(this.#database, space, record);
      this.#mark(record, space);
      return 'duplicate';
    }
    const row = {
      ...record,
      ref: referenceOf(record.digest),
      thread: record.conversation,
      // If another process has moved the record out of the space since #prepare() looked, cut the text here, under the
      // lock. That is rare.
      passages: passages ?? passagesOf(record.text, record.role),
    };
    const id = addRecord(this.#database, row, space, add);
    if (record.isImported === true) this.#database.run(IMPORTED, id, Date.now());
    this.#mark(record, space);
    return 'stored';
  }

  /** Sets the marks of an imported record. An existing mark stays, unless the new one is 'never' or 'retired'. */
  #mark({ pin, editedAt, rules, digest, text }: MemoryRecord, space: number): void {
    if (pin !== undefined) this.#database.run(PIN, pin, space, digest);
    if (editedAt !== undefined) this.#database.run(EDITED, editedAt, space, digest);
    if (rules === undefined) return;
    for (const rule of rulesIn(text)) {
      const mark = rules[rule];
      if (mark !== undefined) {
        this.#database.run(RULE_MARK, space, ruleDigest(rule), mark, Date.now());
      }
    }
  }

  #has(table: 'records' | 'tombstones', space: number, digest: string): boolean {
    const sql = `SELECT 1 AS found FROM ${table} WHERE space = ? AND digest = ?`;
    return this.#database.get(sql, space, digest) !== undefined;
  }

  #forgetOne(row: ForgottenRow, at: number): void {
    this.#index.remove({ space: row.space, record: row.id });
    this.#database.run('DELETE FROM records WHERE id = ?', row.id);
    this.#database.run(
      'INSERT OR IGNORE INTO tombstones (space, digest, at) VALUES (?, ?, ?)',
      row.space,
      row.digest,
      at,
    );
  }
}

/** SQL that merges two pins of one memory: 'never' wins, and else the present one stays. */
export const STRONGER_PIN = `CASE WHEN 'never' IN (marks.pin, excluded.pin) THEN 'never'
  ELSE coalesce(marks.pin, excluded.pin) END`;

const PIN = `INSERT INTO marks (record, pin) SELECT id, ? FROM records WHERE space = ? AND digest = ?
  ON CONFLICT (record) DO UPDATE SET pin = ${STRONGER_PIN}`;

const EDITED = `INSERT INTO marks (record, edited_at) SELECT id, ? FROM records WHERE space = ? AND digest = ?
  ON CONFLICT (record) DO UPDATE SET edited_at = coalesce(marks.edited_at, excluded.edited_at)`;

const RULE_MARK = `INSERT INTO rule_marks (space, rule, mark, at) VALUES (?, ?, ?, ?) ${STRONGER_RULE_MARK}`;

const IMPORTED = 'INSERT INTO marks (record, imported_at) VALUES (?, ?)';

/** Returns the rules of a record that have marks, each with its mark. */
function markedRules(
  { role, text }: SpokenRecord,
  marks: RuleMarks,
): (readonly [string, RuleMark])[] {
  if (role !== 'user' || marks.size === 0) return [];
  return rulesIn(text).flatMap((rule) => {
    const mark = marks.get(ruleDigest(rule));
    return mark === undefined ? [] : [[rule, mark] as const];
  });
}

interface Prepared {
  readonly record: MemoryRecord<SpeakerRole>;
  /** The passages; undefined for a record that may not be stored or is stored already. */
  readonly passages: readonly IndexedPassage[] | undefined;
}

interface ForgottenRow {
  readonly id: number;
  readonly space: number;
  readonly digest: string;
  readonly ref: string;
}

/** Returns the id of a space, and creates the space if it is new; undefined if there are too many spaces. */
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

export function storedRecord(row: RecordRow): SpokenRecord {
  const { branch, source, last_from: lastFrom, ...rest } = row;
  return {
    ...decoded(rest),
    ...(branch === null ? {} : { branch }),
    ...(source === null ? {} : { source }),
    ...(lastFrom === null ? {} : { lastFrom }),
  };
}

/**
 * Returns the references of records and outputs that begin with `start`, at most REFERENCES_MAX. The brace sorts after
 * all characters of a reference.
 */
export function referencesIn(database: Database, start: string): string[] {
  const end = `${start}{`;
  return database
    .all<{ readonly ref: string }>(
      `SELECT ref FROM records WHERE ref >= ? AND ref < ?
       UNION SELECT ref FROM outputs WHERE ref >= ? AND ref < ? ORDER BY ref LIMIT ?`,
      start,
      end,
      start,
      end,
      REFERENCES_MAX,
    )
    .map(({ ref }) => ref);
}

/**
 * Returns the conditions of a filter. Lists and forgetting share them, so forgetting deletes exactly the records that a
 * list without a limit would show.
 */
export function whereOf(filter: Omit<ListFilter, 'limit'>): Conditions {
  const conditions = new Conditions();
  conditions.add('s.name = ?', filter.space);
  conditions.add(
    'r.ref IN (SELECT value FROM json_each(?))',
    filter.refs && JSON.stringify(filter.refs),
  );
  conditions.add('r.role = ?', filter.role);
  // The index `records_by_conversation` begins with the space. SQLite uses it only if the query names spaces.
  const inSpaces = filter.space === undefined ? 'r.space IN (SELECT id FROM spaces) AND ' : '';
  conditions.add(`${inSpaces}r.conversation = ?`, filter.conversation);
  const at = timeBeside(filter);
  conditions.add(`${at} >= ?`, filter.since);
  conditions.add(`${at} <= ?`, filter.until);
  if (filter.words !== undefined) {
    const terms = listTerms(filter.words);
    // Without a word that the index has, find nothing: `forget "the"` must not forget everything.
    if (terms.length === 0) conditions.require('0');
    for (const term of terms) conditions.add(HAS_TERM, quoted(term));
  }
  return conditions;
}

export function newestFirst(filter: Pick<ListFilter, 'conversation'>): string {
  return `${timeBeside(filter)} DESC, r.id DESC`;
}

/**
 * Returns SQL for a record's time. For a conversation, a plus keeps SQLite from using the index by time: the index by
 * conversation is a thousand times faster then.
 */
function timeBeside({ conversation }: Pick<ListFilter, 'conversation'>): string {
  return conversation === undefined ? 'r.at' : '+r.at';
}

const HAS_TERM = `r.id IN (SELECT p.record FROM passage_terms f JOIN passages p ON p.id = f.rowid
  WHERE f.passage_terms MATCH ?)`;

/** Returns SQL for `best.words`: the number of words that the record's best passage has. */
export function bestPassage(terms: readonly string[]): string {
  const holders = terms.map(
    () => 'SELECT rowid AS id FROM passage_terms WHERE passage_terms MATCH ?',
  );
  return `JOIN (SELECT record, max(words) AS words FROM (
      SELECT p.record AS record, count(*) AS words FROM (${holders.join(' UNION ALL ')}) h
      JOIN passages p ON p.id = h.id GROUP BY p.id) GROUP BY record) best ON best.record = r.id`;
}

export function listTerms(words: string): string[] {
  return [...new Set(termsOf(words.slice(0, LIST_CHARS_MAX)))].slice(0, LIST_WORDS_MAX);
}

/** Quotes a term for a full-text query. Terms contain only word characters, so none can close the quotes. */
export function quoted(term: string): string {
  return `"${term}"`;
}

interface NewRow extends Omit<
  MemoryRecord<SpeakerRole>,
  'space' | 'isTimed' | 'isImported' | 'pin'
> {
  readonly ref: string;
  readonly passages: readonly IndexedPassage[];
  /** The conversation's key in the index, by which a text's neighbours are found. */
  readonly thread: string;
}

/** Stores and indexes a text. Returns the id of its row. */
export function addRecord(database: Database, row: NewRow, space: number, add: AddText): number {
  const { text, is_utf16: isUtf16 } = bytesOf(row.text);
  const made = database.get<{ id: number }>(
    `INSERT INTO records
      (space, digest, ref, role, text, is_utf16, conversation, client, at, fingerprint, exchange, branch,
       source, last_from)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
    space,
    row.digest,
    row.ref,
    row.role,
    text,
    isUtf16,
    row.conversation,
    row.client,
    row.at,
    row.fingerprint,
    row.exchange,
    row.branch ?? null,
    row.source ?? null,
    row.lastFrom ?? null,
  );
  const record = made?.id ?? 0;
  add({ ...row, conversation: row.thread }, { space, record });
  return record;
}

interface SaidAgain extends Pick<MemoryRecord, 'digest' | 'at'> {
  readonly isTimed?: true | undefined;
  readonly source?: MemoryRecord['source'] | undefined;
}

/**
 * Updates a stored record whose text was captured again. With `isTimed`, a newer time replaces the stored one, so that
 * a statement which is repeated after its opposite is the newest again. If the new text is verified, the record counts
 * as verified.
 */
export function sayAgain(
  database: Database,
  space: number,
  { digest, at, isTimed, source }: SaidAgain,
): void {
  if (isTimed === true) {
    const sql = 'UPDATE records SET at = ? WHERE space = ? AND digest = ? AND at < ?';
    database.run(sql, at, space, digest, at);
  }
  if (source === undefined) {
    const sql =
      'UPDATE records SET source = NULL WHERE space = ? AND digest = ? AND source IS NOT NULL';
    database.run(sql, space, digest);
  }
}
