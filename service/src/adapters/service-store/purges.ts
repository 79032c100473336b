import type {
  PageFilter,
  Purge,
  PurgeOrder,
  PurgeScope,
  TenantPurge,
} from '../../ports/service-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { PassageIndex } from '../../../../src/adapters/store/passage-index.ts';
import { sourceNumber, type PurgeRow, purgeOf, scopeOf } from './row-shapes.ts';
import type { Rows } from '../../ports/rows.ts';
import { addChange, addEvent } from '../control/changes.ts';
import { spaceCondition, type Spaces } from './spaces.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/**
 * Purges. One transaction changes the generation and records the order. Small ones erase the
 * records, so that a recall waits for one at most, and continue after a crash. The last one changes the
 * generation again: whoever recalled or asked in between sees that. A purged record leaves
 * a tombstone, and no trace of its words: neither in the tables nor in the write-ahead log.
 */

/** Records a transaction: about 100 ms. */
const BATCH = 256;

interface Doomed {
  readonly id: number;
  readonly digest: string;
  readonly ref: string;
  readonly text_ref: string | null;
  readonly source: number;
  readonly size: number;
}

interface Sizes {
  readonly records: number;
  readonly bytes: number;
  readonly last: number;
}

/** `space`: as its tenant names it. `at`: milliseconds since 1970. */
type ForgetBlocks = (tenant: string, space: string, at: number) => void;

export class Purges {
  readonly #database: Database;
  readonly #spaces: Spaces;
  readonly #index: PassageIndex;
  readonly #forgetBlocks: ForgetBlocks;

  /** `forgetBlocks`: runs in the transaction of a purge, for the tenant of its space. */
  constructor(database: Database, spaces: Spaces, forgetBlocks: ForgetBlocks) {
    this.#database = database;
    this.#spaces = spaces;
    this.#forgetBlocks = forgetBlocks;
    this.#index = new PassageIndex(database);
  }

  /** `rows`: of the transaction in which it runs. */
  async begin(rows: Rows, order: PurgeOrder): Promise<Purge> {
    const { space, scope, isDryRun, now } = order;
    const before = this.#spaces.state(space).generation;
    const id = isDryRun ? this.#spaces.idOf(space) : this.#spaces.make(space);
    const sizes = this.#sizes(scope, id ?? -1);
    if (!isDryRun && id !== undefined) {
      this.#moveOn(space, id, now);
      if ('digests' in scope) this.#bury(id, scope.digests, now);
    }
    const purge = {
      number: 0,
      id: order.purgeId,
      space,
      scope: JSON.stringify(scope),
      state: isDryRun ? ('dry_run' as const) : ('tombstoned' as const),
      records: sizes.records,
      items: this.#itemsOf(scope, id ?? -1),
      bytes: sizes.bytes,
      generation_before: before,
      generation_after: this.#spaces.state(space).generation,
      requested_by: order.requestedBy,
      requested_at: now,
      erased_at: null,
      upto: sizes.last,
    };
    if (!isDryRun) {
      const tenant = tenantOf(space);
      this.#keep(purge);
      if (order.note !== undefined) await addEvent(rows, tenant, order.note);
      await addChange(rows, { tenant, kind: 'purge', id: order.purgeId });
    }
    return purgeOf(purge);
  }

  /** True when nothing is left of it. */
  continue(purgeId: string, now: number): boolean {
    const row = this.#row(purgeId);
    if (row === undefined || row.state !== 'tombstoned') return true;
    const space = this.#spaces.idOf(row.space);
    const left = space === undefined ? 0 : this.#eraseSome(row, space, now);
    if (left > 0) return false;
    if (!this.#rewriteFile()) {
      const message = 'Another process reads the file, which still has bytes of purged records.';
      throw new MemoryError('unavailable', message);
    }
    const sql = "UPDATE purges SET state = 'erased', erased_at = ? WHERE id = ?";
    this.#database.run(sql, now, purgeId);
    return true;
  }

  /**
   * SQLite copies rows within its file, and leaves such copies in bytes that it does not use. Only a
   * new file is without them. It is not begun beside a long read: each attempt would make the log
   * longer by the whole file.
   */
  #rewriteFile(): boolean {
    if (!this.#database.emptyLog()) return false;
    this.#database.exec('VACUUM');
    return this.#database.emptyLog();
  }

  find(purgeId: string): Purge | undefined {
    const row = this.#row(purgeId);
    return row === undefined ? undefined : purgeOf(row);
  }

  list({ spaces, limit, offset }: PageFilter): Purge[] {
    // A purge outlives its space's records, never its name.
    const { where, value } = spaceCondition(spaces);
    return this.#database
      .all<PurgeRow>(
        `SELECT p.* FROM purges p JOIN spaces s ON s.name = p.space WHERE ${where}
         ORDER BY p.number DESC LIMIT ? OFFSET ?`,
        value,
        limit,
        offset,
      )
      .map(purgeOf);
  }

  unfinished(): TenantPurge[] {
    const sql = "SELECT id, space FROM purges WHERE state = 'tombstoned' ORDER BY number";
    const found = this.#database.all<Pick<PurgeRow, 'id' | 'space'>>(sql);
    return found.map(({ id: purgeId, space }) => ({ tenant: tenantOf(space), purgeId }));
  }

  #eraseSome(row: PurgeRow, space: number, now: number): number {
    const { where, values } = conditionOf(scopeOf(row));
    return this.#database.transaction(() => {
      const doomed = this.#database.all<Doomed>(
        `SELECT o.id, o.digest, o.ref, o.text_ref, o.source, o.size FROM objects o
         WHERE o.space = ? AND o.id <= ? AND ${where} LIMIT ${BATCH + 1}`,
        space,
        row.upto,
        ...values,
      );
      for (const one of doomed.slice(0, BATCH)) this.#erase(one, space, now);
      if (doomed.length > 0 && doomed.length <= BATCH) this.#end(row, space, now);
      return doomed.length;
    });
  }

  /** A block that was recalled while some records were left may quote one of them. */
  #end(row: PurgeRow, space: number, now: number): void {
    this.#moveOn(row.space, space, now);
    const { generation } = this.#spaces.state(row.space);
    this.#database.run('UPDATE purges SET generation_after = ? WHERE id = ?', generation, row.id);
  }

  #moveOn(name: string, space: number, now: number): void {
    this.#spaces.bump(space);
    this.#forgetBlocks(tenantOf(name), nameOf(name), now);
  }

  #erase({ id, digest, ref, text_ref, source, size }: Doomed, space: number, now: number): void {
    const sql = 'SELECT record FROM object_texts WHERE object = ?';
    const texts = this.#database.all<{ record: number }>(sql, id);
    for (const { record } of texts) {
      this.#index.remove({ space, record });
      this.#database.run('DELETE FROM object_texts WHERE record = ?', record);
      this.#database.run('DELETE FROM records WHERE id = ?', record);
    }
    this.#database.run('DELETE FROM objects WHERE id = ?', id);
    this.#database.run(
      `INSERT INTO purged (space, digest, ref, text_ref, at) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET ref = excluded.ref, text_ref = excluded.text_ref`,
      space,
      digest,
      ref,
      text_ref,
      now,
    );
    this.#database.run(
      'UPDATE sources SET records = records - 1, bytes = bytes - ? WHERE id = ?',
      size,
      source,
    );
    this.#database.run('DELETE FROM sources WHERE id = ? AND records = 0', source);
    this.#spaces.shrink(space, { records: 1, bytes: size });
  }

  /** A digest that was never stored is kept out from now on, too. */
  #bury(space: number, digests: readonly string[], now: number): void {
    this.#database.run(
      `INSERT OR IGNORE INTO purged (space, digest, ref, text_ref, at)
       SELECT ?, value, '', NULL, ? FROM json_each(?)`,
      space,
      now,
      JSON.stringify(digests),
    );
  }

  #sizes(scope: PurgeScope, space: number): Sizes {
    const { where, values } = conditionOf(scope);
    const row = this.#database.get<Sizes>(
      `SELECT count(*) AS records, coalesce(sum(o.size), 0) AS bytes, coalesce(max(o.id), 0) AS last
       FROM objects o WHERE o.space = ? AND ${where}`,
      space,
      ...values,
    );
    return row ?? { records: 0, bytes: 0, last: 0 };
  }

  #itemsOf(scope: PurgeScope, space: number): number {
    const { where, values } = conditionOf(scope);
    const row = this.#database.get<{ items: number }>(
      `SELECT count(*) AS items FROM objects o JOIN object_texts t ON t.object = o.id
       WHERE o.space = ? AND ${where}`,
      space,
      ...values,
    );
    return row?.items ?? 0;
  }

  #row(purgeId: string): PurgeRow | undefined {
    return this.#database.get<PurgeRow>('SELECT * FROM purges WHERE id = ?', purgeId);
  }

  #keep(row: PurgeRow): void {
    this.#database.run(
      `INSERT INTO purges (id, space, scope, state, records, items, bytes, generation_before,
         generation_after, requested_by, requested_at, upto)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      row.id,
      row.space,
      row.scope,
      row.state,
      row.records,
      row.items,
      row.bytes,
      row.generation_before,
      row.generation_after,
      row.requested_by,
      row.requested_at,
      row.upto,
    );
  }
}

/** A space is stored with its tenant in front: see tenant-store.ts. */
function tenantOf(space: string): string {
  return space.slice(0, space.indexOf(':'));
}

/** The space as its tenant names it. */
function nameOf(space: string): string {
  return space.slice(space.indexOf(':') + 1);
}

/** On o, the objects of one space. */
function conditionOf(scope: PurgeScope): { where: string; values: (string | number)[] } {
  if ('all' in scope) return { where: '1', values: [] };
  if ('session_id' in scope) {
    const where = 'o.source IN (SELECT id FROM sources WHERE space = o.space AND session = ?)';
    return { where, values: [scope.session_id] };
  }
  if ('source_id' in scope)
    return { where: 'o.source = ?', values: [sourceNumber(scope.source_id)] };
  if ('before' in scope) return { where: 'o.observed_at < ?', values: [Date.parse(scope.before)] };
  const where = 'o.digest IN (SELECT value FROM json_each(?))';
  return { where, values: [JSON.stringify(scope.digests)] };
}
