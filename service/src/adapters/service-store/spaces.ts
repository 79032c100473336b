import type { SpaceChoice, SpaceState } from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { spaceId } from '../../../../src/adapters/store/records.ts';
import { epochOf } from './schema.ts';

/** Spaces with their generation and commit sequence. One that was never written is at 0 and 0. */

interface StateRow {
  readonly id: number;
  readonly counter: number;
  readonly seq: number;
  readonly records: number;
}

export interface Growth {
  readonly records: number;
  readonly bytes: number;
}

export class Spaces {
  readonly #database: Database;
  readonly #epoch: string;

  constructor(database: Database) {
    this.#database = database;
    this.#epoch = epochOf(database);
  }

  state(space: string): SpaceState {
    const row = this.#row(space);
    return {
      space,
      generation: this.#generation(row?.counter ?? 0),
      commitSeq: row?.seq ?? 0,
      records: row?.records ?? 0,
    };
  }

  idOf(space: string): number | undefined {
    return this.#row(space)?.id;
  }

  /** The space's row, made where there is none; undefined when there are too many spaces. */
  make(space: string): number | undefined {
    const id = spaceId(this.#database, space);
    if (id === undefined) return undefined;
    this.#database.run('INSERT OR IGNORE INTO space_states (space) VALUES (?)', id);
    return id;
  }

  /** How many more records the plan allows to the tenant of a space; Infinity without such a limit. */
  roomOf(space: string): number {
    const [tenant = ''] = space.split(':', 1);
    const most = this.#database.get<{ records: number | null }>(
      `SELECT json_extract(p.limits, '$.records') AS records FROM tenants t
       JOIN plans p ON p.name = t.plan WHERE t.tenant_id = ?`,
      tenant,
    )?.records;
    if (most === null || most === undefined) return Infinity;
    // Names of spaces are unique with their tenant in front, and a semicolon follows a colon.
    const held = this.#database.get<{ records: number }>(
      `SELECT coalesce(sum(t.records), 0) AS records FROM spaces s
       JOIN space_states t ON t.space = s.id WHERE s.name >= ? AND s.name < ?`,
      `${tenant}:`,
      `${tenant};`,
    );
    return most - (held?.records ?? 0);
  }

  bytesOf(id: number): number {
    const sql = 'SELECT bytes FROM space_states WHERE space = ?';
    return this.#database.get<{ bytes: number }>(sql, id)?.bytes ?? 0;
  }

  /** The commit sequence grows by one a record; it never goes back within a generation. */
  grow(id: number, { records, bytes }: Growth): void {
    this.#database.run(
      `UPDATE space_states SET seq = seq + ?, records = records + ?, bytes = bytes + ?
       WHERE space = ?`,
      records,
      records,
      bytes,
      id,
    );
  }

  shrink(id: number, { records, bytes }: Growth): void {
    this.#database.run(
      'UPDATE space_states SET records = records - ?, bytes = bytes - ? WHERE space = ?',
      records,
      bytes,
      id,
    );
  }

  /** Every destructive change makes a new generation. */
  bump(id: number): void {
    this.#database.run('UPDATE space_states SET counter = counter + 1 WHERE space = ?', id);
  }

  #row(space: string): StateRow | undefined {
    return this.#database.get<StateRow>(
      `SELECT s.id, t.counter, t.seq, t.records
       FROM spaces s JOIN space_states t ON t.space = s.id WHERE s.name = ?`,
      space,
    );
  }

  #generation(counter: number): string {
    return `g${this.#epoch}.${counter}`;
  }
}

/** A condition on s, the space, and its one value. */
export function spaceCondition(choice: SpaceChoice): { where: string; value: string } {
  if ('space' in choice) return { where: 's.name = ?', value: choice.space };
  // Globs of a key have no other special character than the star: src/core/memory-api/keys.ts.
  const globs = choice.globs ?? ['*'];
  const where = 'EXISTS (SELECT 1 FROM json_each(?) g WHERE s.name GLOB g.value)';
  return { where, value: JSON.stringify(globs) };
}
