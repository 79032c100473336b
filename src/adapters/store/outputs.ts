import { textBytes } from '../../core/memory-api/canonical.ts';
import { isStorable } from '../../core/memory/record.ts';
import { OUTPUT_PLACE, referenceOf } from '../../core/memory/reference.ts';
import { termsOf } from '../../core/recall/terms.ts';
import type {
  CaptureState,
  ForgetFilter,
  MemoryRecord,
  RecordKey,
  StoredRecord,
} from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { noteForgetting } from './forgetting.ts';
import type { Holder, StoredBytes } from './possessions.ts';
import { listTerms, spaceId } from './records.ts';
import { Conditions, sureTime, textOf } from './driver.ts';

/**
 * Stores the exact tool outputs that svc may leave out of a prompt. If a row is missing, svc sends the output whole:
 * the client has the text too.
 */

/** How long an output is stored after its last use. If an older session continues, its outputs are sent whole again. */
const AGE_MAX_MS = 30 * 24 * 3600 * 1000;
/** Bound on the bytes of all outputs: 15,000 of the mean size in real sessions. */
const BYTES_MAX = 256 * 1024 * 1024;
/** Writes between two prunings, which read the sizes of all rows. */
const WRITES_PER_PRUNE = 256;
/** Time for which a further use of an output is not recorded. A day is exact enough for AGE_MAX_MS. */
const USE_NOTED_MS = 24 * 3600 * 1000;

interface OutputRow {
  readonly id: number;
  readonly digest: string;
  readonly text: Uint8Array;
  readonly used: number;
}

export class Outputs implements Holder {
  readonly #database: Database;
  #writes = 0;
  /** Ids of used rows. The next write records their use, because a proof must not wait for a lock. */
  readonly #used = new Set<number>();

  constructor(database: Database) {
    this.#database = database;
  }

  keep(records: readonly MemoryRecord[], now: number): CaptureState[] {
    // isStorable() searches for secrets. Do that before the transaction locks the file.
    const storable = records.map(isStorable);
    return this.#database.transaction(() => {
      const states = records.map((record, at) =>
        storable[at] === true ? this.#keepOne(record, now) : 'rejected',
      );
      this.#noteUse(now);
      this.#writes += 1;
      if (this.#writes % WRITES_PER_PRUNE === 1) this.#prune(now);
      return states;
    });
  }

  /** Returns the bytes of outputs. The next write records this as their use. */
  bytesOf(space: string, digests: readonly string[], now: number): StoredBytes[] {
    const rows = this.#database.all<OutputRow>(
      `SELECT o.id, o.digest, o.text, o.used FROM outputs o JOIN spaces s ON s.id = o.space
       WHERE s.name = ? AND o.digest IN (SELECT value FROM json_each(?))`,
      space,
      JSON.stringify(digests),
    );
    for (const { id, used } of rows) if (now - used > USE_NOTED_MS) this.#used.add(id);
    return rows.flatMap(({ digest, text }) => {
      const bytes = textBytes('tool', textOf({ text, is_utf16: 0 }));
      return bytes === undefined ? [] : [{ digest, bytes }];
    });
  }

  retrieve(key: RecordKey): StoredRecord<'tool'> | undefined {
    const [where, values] =
      'ref' in key
        ? ['o.ref = ?', [key.ref]]
        : ['s.name = ? AND o.digest = ?', [key.space, key.digest]];
    const row = this.#database.get<
      Omit<OutputRow, 'id' | 'used'> &
        Pick<StoredRecord, 'space' | 'conversation' | 'client' | 'at'>
    >(
      `SELECT o.digest, s.name AS space, o.text, o.conversation, o.client, o.at FROM outputs o JOIN spaces s ON s.id = o.space WHERE ${where} ORDER BY o.id LIMIT 1`,
      ...values,
    );
    if (row === undefined) return undefined;
    const text = textOf({ text: row.text, is_utf16: 0 });
    return { ...row, text, ref: referenceOf(row.digest), ...OUTPUT_PLACE };
  }

  /** Returns those of the references that name a stored output. */
  heldRefs(refs: readonly string[]): string[] {
    const sql = 'SELECT DISTINCT ref FROM outputs WHERE ref IN (SELECT value FROM json_each(?))';
    return this.#database
      .all<{ readonly ref: string }>(sql, JSON.stringify(refs))
      .map(({ ref }) => ref);
  }

  /** Deletes outputs and leaves tombstones. Returns the number of outputs. */
  forget(filter: ForgetFilter, now: number): number {
    const conditions = new Conditions();
    const isIn = (column: string, values: readonly (string | number)[]): void =>
      conditions.add(`${column} IN (SELECT value FROM json_each(?))`, JSON.stringify(values));
    if ('refs' in filter) isIn('o.ref', filter.refs);
    if ('words' in filter) isIn('o.id', this.#withWords(filter));
    conditions.add('o.space = (SELECT id FROM spaces WHERE name = ?)', filter.space);
    const { where, values } = conditions;
    return this.#database.transaction(() => {
      this.#database.run(
        `INSERT OR IGNORE INTO tombstones (space, digest, at)
         SELECT o.space, o.digest, ? FROM outputs o ${where}`,
        now,
        ...values,
      );
      const forgotten = this.#database.run(`DELETE FROM outputs AS o ${where}`, ...values);
      if (forgotten > 0) noteForgetting(this.#database);
      return forgotten;
    });
  }

  /** Deletes all outputs of a space and marks none as forgotten: copies that svc may make again (dropOutputs). */
  drop(space: string): void {
    const sql = 'DELETE FROM outputs WHERE space = (SELECT id FROM spaces WHERE name = ?)';
    this.#database.transaction(() => {
      if (this.#database.run(sql, space) > 0) noteForgetting(this.#database);
    });
  }

  /** Returns spaces with outputs, the last used first. */
  spaces(limit: number): string[] {
    return this.#database
      .all<{ readonly name: string }>(
        `SELECT s.name FROM outputs o JOIN spaces s ON s.id = o.space
         GROUP BY s.name ORDER BY max(o.used) DESC LIMIT ?`,
        limit,
      )
      .map(({ name }) => name);
  }

  /** Returns the ids of outputs with all these words. It reads every output (of `space`), because there is no index. */
  #withWords({ words, space }: { readonly words: string; readonly space?: string }): number[] {
    const terms = listTerms(words);
    if (terms.length === 0) return [];
    const ids = this.#database.all<{ id: number }>(
      `SELECT o.id FROM outputs o JOIN spaces s ON s.id = o.space WHERE s.name = coalesce(?, s.name)`,
      space ?? null,
    );
    return ids.flatMap(({ id }) => {
      const row = this.#database.get<{ text: Uint8Array }>(
        'SELECT text FROM outputs WHERE id = ?',
        id,
      );
      const held = new Set(termsOf(row === undefined ? '' : textOf({ ...row, is_utf16: 0 })));
      return terms.every((term) => held.has(term)) ? [id] : [];
    });
  }

  #keepOne(record: MemoryRecord, now: number): CaptureState {
    const space = spaceId(this.#database, record.space);
    if (space === undefined) return 'rejected';
    const has = (table: string): boolean =>
      this.#database.get(
        `SELECT 1 AS found FROM ${table} WHERE space = ? AND digest = ?`,
        space,
        record.digest,
      ) !== undefined;
    if (has('tombstones')) return 'forgotten';
    if (has('outputs')) return 'duplicate';
    this.#database.run(
      `INSERT INTO outputs (space, digest, ref, text, conversation, client, at, used)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      space,
      record.digest,
      referenceOf(record.digest),
      Buffer.from(record.text, 'utf8'),
      record.conversation,
      record.client,
      record.at,
      now,
    );
    return 'stored';
  }

  #noteUse(now: number): void {
    if (this.#used.size === 0) return;
    const sql = 'UPDATE outputs SET used = ? WHERE id IN (SELECT value FROM json_each(?))';
    this.#database.run(sql, now, JSON.stringify([...this.#used]));
    this.#used.clear();
  }

  #prune(now: number): void {
    const sure = Math.min(now, sureTime(this.#database, { table: 'outputs', column: 'used' }));
    this.#database.run('DELETE FROM outputs WHERE used < ?', sure - AGE_MAX_MS);
    this.#database.run(
      `DELETE FROM outputs WHERE id IN (SELECT id FROM (
         SELECT id, sum(length(text)) OVER (ORDER BY used DESC, id DESC) AS bytes FROM outputs
       ) WHERE bytes > ?)`,
      BYTES_MAX,
    );
  }
}
