import { shortReference } from '../../core/memory/reference.ts';
import { standingIn, STANDING_TERMS } from '../../core/recall/standing.ts';
import type {
  DeskFilter,
  DeskPage,
  DeskRecord,
  Pin,
  PinChange,
  Shelf,
  ShelfDay,
  Sighting,
} from '../../ports/memory-desk.ts';
import type { Conditions } from './conditions.ts';
import type { Database } from './database.ts';
import { RECORD_COLUMNS, type RecordRow, storedRecord, whereOf } from './records.ts';

/** Records as a person looks through them, with the marks that a person gave them. */

const SHELVES_MAX = 500;
const DAYS_MAX = 90;
const LIMIT_MAX = 500;
/** Records that are read to find the standing instructions among them. */
const STANDING_READ_MAX = 1000;
const SIGHTINGS_MAX = 50;

interface DeskRow extends RecordRow {
  readonly pin: Pin | null;
  readonly edited_at: number | null;
}

export class Desk {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  shelves(): Shelf[] {
    return this.#database.all<Shelf>(SHELVES);
  }

  days(space: string): ShelfDay[] {
    return this.#database.all<ShelfDay>(DAYS, space);
  }

  browse(filter: DeskFilter): DeskPage {
    const conditions = conditionsOf(filter);
    if (filter.kind === 'standing') return this.#standing(conditions, filter);
    const [sum] = this.#database.all<{ total: number }>(
      `SELECT count(*) AS total ${FROM} ${conditions.where}`,
      ...conditions.values,
    );
    const records = this.#rows(conditions, filter);
    return { records, total: sum?.total ?? 0 };
  }

  /** The whole references that blocks wrote in short are found too. */
  sightings(refs: readonly string[]): Sighting[] {
    const found = new Map<string, Sighting>();
    for (const ref of refs) {
      const rows = this.#database.all<Sighting>(SIGHTINGS, `"${shortReference(ref)}`);
      for (const row of rows) found.set(row.id, row);
    }
    return [...found.values()].toSorted((a, b) => b.at - a.at).slice(0, SIGHTINGS_MAX);
  }

  pin({ space, ref, pin }: PinChange): boolean {
    const id = this.#idOf(space, ref);
    if (id === undefined) return false;
    this.#database.run(PIN, id, pin ?? null);
    return true;
  }

  markEdited({ space, digest }: { space: string; digest: string }, at: number): void {
    this.#database.run(EDITED, at, space, digest);
  }

  /** Tombstones go; the caller captures the records again, and then has their marks put back. */
  unbury(records: readonly DeskRecord[]): void {
    for (const { space, digest } of records) this.#database.run(UNBURY, digest, space);
  }

  putMarks(records: readonly DeskRecord[]): void {
    for (const { space, ref, pin, digest, editedAt } of records) {
      if (pin !== undefined) this.pin({ space, ref, pin });
      if (editedAt !== undefined) this.markEdited({ space, digest }, editedAt);
    }
  }

  #idOf(space: string, ref: string): number | undefined {
    return this.#database.get<{ id: number }>(ID, space, ref)?.id;
  }

  #rows(
    { where, values }: Conditions,
    { limit, offset = 0 }: Pick<DeskFilter, 'limit' | 'offset'>,
  ): DeskRecord[] {
    return this.#database
      .all<DeskRow>(
        `SELECT ${RECORD_COLUMNS}, m.pin, m.edited_at ${FROM} ${where}
         ORDER BY r.at DESC, r.id DESC LIMIT ? OFFSET ?`,
        ...values,
        Math.max(0, Math.min(limit, LIMIT_MAX)),
        Math.max(0, offset),
      )
      .map(deskRecord);
  }

  #standing(condition: Conditions, { limit, offset = 0 }: DeskFilter): DeskPage {
    const rows = this.#database
      .all<DeskRow>(
        `SELECT ${RECORD_COLUMNS}, m.pin, m.edited_at ${FROM} ${condition.where}
         ORDER BY r.at DESC, r.id DESC LIMIT ${STANDING_READ_MAX}`,
        ...condition.values,
      )
      .map(deskRecord);
    const records = rows.filter(({ text }) => standingIn(text).length > 0);
    return { records: records.slice(offset, offset + limit), total: records.length };
  }
}

function conditionsOf({ kind, client, ...filter }: DeskFilter): Conditions {
  const conditions = whereOf(filter);
  conditions.add('r.client = ?', client);
  if (kind !== undefined) conditions.require(KINDS[kind]);
  return conditions;
}

const KINDS: Readonly<Record<NonNullable<DeskFilter['kind']>, string>> = {
  unverified: `r.source = 'unverified'`,
  by_hand: `r.conversation LIKE 'added!_%' ESCAPE '!'`,
  edited: 'm.edited_at IS NOT NULL',
  always: `m.pin = 'always'`,
  never: `m.pin = 'never'`,
  standing: `r.role = 'user' AND r.source IS NULL AND r.id IN (SELECT p.record FROM passage_terms f
    JOIN passages p ON p.id = f.rowid
    WHERE f.passage_terms MATCH '${STANDING_TERMS.map((term) => `"${term}"`).join(' OR ')}')`,
};

function deskRecord({ pin, edited_at: editedAt, ...row }: DeskRow): DeskRecord {
  return {
    ...storedRecord(row),
    ...(pin === null ? {} : { pin }),
    ...(editedAt === null ? {} : { editedAt }),
  };
}

const FROM = `FROM records r JOIN spaces s ON s.id = r.space LEFT JOIN marks m ON m.record = r.id`;

const SHELVES = `SELECT s.name AS space, count(*) AS memories, max(r.at) AS newest
  FROM records r JOIN spaces s ON s.id = r.space GROUP BY r.space ORDER BY newest DESC LIMIT ${SHELVES_MAX}`;

const DAYS = `SELECT date(r.at / 1000, 'unixepoch', 'localtime') AS day, count(*) AS memories
  FROM records r JOIN spaces s ON s.id = r.space WHERE s.name = ?
  GROUP BY day ORDER BY day DESC LIMIT ${DAYS_MAX}`;

const SIGHTINGS = `SELECT id, at, coalesce(row ->> '$.client', '') AS client FROM requests
  WHERE instr(row ->> '$.recall.refs', ?) > 0 ORDER BY number DESC LIMIT ${SIGHTINGS_MAX}`;

const ID = `SELECT r.id FROM records r JOIN spaces s ON s.id = r.space WHERE s.name = ? AND r.ref = ?`;

const PIN = `INSERT INTO marks (record, pin) VALUES (?, ?)
  ON CONFLICT (record) DO UPDATE SET pin = excluded.pin`;

const EDITED = `INSERT INTO marks (record, edited_at)
  SELECT r.id, ? FROM records r JOIN spaces s ON s.id = r.space WHERE s.name = ? AND r.digest = ?
  ON CONFLICT (record) DO UPDATE SET edited_at = excluded.edited_at`;

const UNBURY = `DELETE FROM tombstones WHERE digest = ?
  AND space = (SELECT id FROM spaces WHERE name = ?)`;
