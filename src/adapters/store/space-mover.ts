import { rulesIn } from '../../core/recall/rules.ts';
import { SIGNALS_MAX } from '../../core/recall/running-share.ts';
import type { SpaceMove, SpaceMoved } from '../../ports/memory.ts';
import type { Database } from './database.ts';
import { PassageIndex, passagesOf } from './passage-index.ts';
import { ruleDigest, STRONGER_RULE_MARK } from './recall-marks.ts';
import { spaceId, STRONGER_PIN } from './records.ts';
import { type StoredText, textOf } from './driver.ts';

/**
 * Moves the content of a space into another one: memories, left-out outputs, tombstones, marks and signals. References
 * stay valid, because they depend only on the text.
 */

/** Rows that are moved in one transaction, in about 20 ms, so that another process can write in between. */
const BATCH = 32;

interface MovedRow extends StoredText {
  readonly id: number;
  readonly digest: string;
  readonly role: 'user' | 'assistant';
  readonly conversation: string;
  readonly exchange: number;
  readonly at: number;
  readonly source: 'unverified' | null;
}

interface Ids {
  readonly from: number;
  readonly to: number;
}

export class SpaceMover {
  readonly #database: Database;
  readonly #index: PassageIndex;

  constructor(database: Database) {
    this.#database = database;
    this.#index = new PassageIndex(database);
  }

  /**
   * Moves a part; when nothing is left to move, both counts are 0. Memories and outputs that were forgotten in the
   * target space are not moved.
   */
  moveSome({ from: fromName, to: toName, refs }: SpaceMove): SpaceMoved {
    const from = spaceId(this.#database, fromName);
    const to = spaceId(this.#database, toName);
    if (from === undefined || to === undefined || from === to) return { memories: 0, outputs: 0 };
    return this.#database.transaction(() => {
      const memories = this.#moveRecords({ from, to }, refs);
      if (refs !== undefined) return { memories, outputs: 0 };
      const outputs = memories === 0 ? this.#moveOutputs({ from, to }) : 0;
      if (memories + outputs === 0) this.#moveRest({ from, to });
      return { memories, outputs };
    });
  }

  #moveRecords({ from, to }: Ids, refs: readonly string[] | undefined): number {
    const named = refs === undefined ? null : JSON.stringify(refs);
    const rows = this.#database.all<MovedRow>(RECORDS, from, to, named, named);
    this.#index.adding((add) => {
      for (const { source, ...row } of rows) {
        this.#index.remove({ space: from, record: row.id });
        this.#database.run(UNBURY, to, row.digest);
        if (refs !== undefined) this.#leave({ from, to }, row);
        const held = this.#database.get<{ id: number }>(HELD, to, row.digest);
        if (held === undefined) {
          this.#database.run('UPDATE records SET space = ? WHERE id = ?', to, row.id);
          const passages = passagesOf(textOf(row), row.role);
          const text = { ...row, passages, ...(source === null ? {} : { source }) };
          add(text, { space: to, record: row.id });
        } else {
          this.#database.run(SAID_AGAIN, row.at, source, held.id);
          this.#database.run(INHERIT, held.id, row.id);
          this.#database.run(INHERIT_MARKS, held.id, row.id);
          this.#database.run('DELETE FROM records WHERE id = ?', row.id);
        }
      }
    });
    return rows.length;
  }

  /**
   * Leaves a tombstone in the old space for a memory that is moved without the rest of its space, and copies the marks
   * of its rules to the new space.
   */
  #leave({ from, to }: Ids, row: Omit<MovedRow, 'source'>): void {
    this.#database.run(BURY, from, row.digest, Date.now());
    const rules = row.role === 'user' ? rulesIn(textOf(row)).map(ruleDigest) : [];
    this.#database.run(MOVE_RULE_MARKS, to, from, JSON.stringify(rules));
  }

  #moveOutputs({ from, to }: Ids): number {
    const ids = JSON.stringify(
      this.#database.all<{ id: number }>(OUTPUTS, from, to).map(({ id }) => id),
    );
    const moved = this.#database.run(MOVE_OUTPUTS, to, ids, to);
    return moved + this.#database.run(DROP_COPIES, from, ids);
  }

  /** Copies the tombstones, and moves the rule marks and signals. The signals of the target space count as newer. */
  #moveRest({ from, to }: Ids): void {
    this.#database.run(MOVE_TOMBSTONES, to, from, to, to);
    this.#database.run(MOVE_RULE_MARKS, to, from, null);
    this.#database.run('DELETE FROM rule_marks WHERE space = ?', from);
    this.#database.run(MOVE_SIGNALS, to, to, from, from);
    this.#database.run('DELETE FROM signals WHERE space = ?', from);
    this.#database.run(DROP_OLD_SIGNALS, to, to);
  }
}

const RECORDS = `SELECT r.id, r.digest, r.role, r.text, r.is_utf16, r.conversation, r.exchange, r.at,
    r.source
  FROM records r WHERE r.space = ?
  AND NOT EXISTS (SELECT 1 FROM tombstones t
    WHERE t.space = ? AND t.digest = r.digest AND t.is_moved = 0)
  AND (? IS NULL OR r.ref IN (SELECT value FROM json_each(?))) LIMIT ${BATCH}`;

/** Removes the tombstone of a text that was moved away or edited, because the user brings it back. */
export const UNBURY = 'DELETE FROM tombstones WHERE space = ? AND digest = ? AND is_moved = 1';

const BURY = 'INSERT OR IGNORE INTO tombstones (space, digest, at, is_moved) VALUES (?, ?, ?, 1)';

const HELD = 'SELECT id FROM records WHERE space = ? AND digest = ?';

const SAID_AGAIN =
  'UPDATE records SET at = max(at, ?), source = iif(? IS NULL, NULL, source) WHERE id = ?';

/** Gives the provenance of the moved record to the record in the target space, unless that has its own. */
const INHERIT = 'UPDATE OR IGNORE provenance SET record = ? WHERE record = ?';

/** Merges the marks of two records with the same text. */
const INHERIT_MARKS = `INSERT INTO marks (record, pin, edited_at, imported_at)
  SELECT ?, pin, edited_at, imported_at FROM marks WHERE record = ?
  ON CONFLICT (record) DO UPDATE SET pin = ${STRONGER_PIN},
    edited_at = coalesce(marks.edited_at, excluded.edited_at)`;

/** Copies the marks of these rules, or of all rules if ?3 is null. */
const MOVE_RULE_MARKS = `INSERT INTO rule_marks (space, rule, mark, at)
  SELECT ?1, rule, mark, at FROM rule_marks WHERE space = ?2
  AND (?3 IS NULL OR rule IN (SELECT value FROM json_each(?3))) ${STRONGER_RULE_MARK}`;

const OUTPUTS = `SELECT o.id FROM outputs o WHERE o.space = ?
  AND NOT EXISTS (SELECT 1 FROM tombstones t WHERE t.space = ? AND t.digest = o.digest) LIMIT ${BATCH}`;

const MOVE_OUTPUTS = `UPDATE outputs SET space = ? WHERE id IN (SELECT value FROM json_each(?))
  AND NOT EXISTS (SELECT 1 FROM outputs h WHERE h.space = ? AND h.digest = outputs.digest)`;

/** Deletes outputs that the target space had already. */
const DROP_COPIES =
  'DELETE FROM outputs WHERE space = ? AND id IN (SELECT value FROM json_each(?))';

/** Copies tombstones, so that a conversation that continues in the target space does not bring back forgotten texts. */
const MOVE_TOMBSTONES = `INSERT OR IGNORE INTO tombstones (space, digest, at, is_moved)
  SELECT ?, t.digest, t.at, t.is_moved FROM tombstones t WHERE t.space = ?
  AND NOT EXISTS (SELECT 1 FROM records r WHERE r.space = ? AND r.digest = t.digest)
  AND NOT EXISTS (SELECT 1 FROM outputs o WHERE o.space = ? AND o.digest = t.digest)`;

const MOVE_SIGNALS = `INSERT INTO signals (space, number, signal)
  SELECT ?, number + coalesce((SELECT min(number) FROM signals WHERE space = ?), 1) - 1 -
    (SELECT max(number) FROM signals WHERE space = ?), signal FROM signals WHERE space = ?`;

const DROP_OLD_SIGNALS = `DELETE FROM signals WHERE space = ? AND number <=
  (SELECT max(number) FROM signals WHERE space = ?) - ${SIGNALS_MAX}`;
