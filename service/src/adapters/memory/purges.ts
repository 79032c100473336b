import { groupBy } from '../../../../src/core/bytes/batches.ts';
import type { PurgeReceipt, PurgeScope } from '../../../../src/core/memory-api/contract.ts';
import type { PageFilter, PurgeOrder } from '../../ports/service-store.ts';
import type { Rows, SqlValue } from '../../ports/rows.ts';
import { addChange, addEvent } from '../control/changes.ts';
import { forgetBlocks } from '../control/ledger.ts';
import { purgeOf, type PurgeRow, sourceNumber } from './row-shapes.ts';
import { Spaces } from './spaces.ts';
import { MEMORY } from './statements.ts';

/**
 * Purges records of a tenant. The first transaction changes the generation and stores the order. Later transactions
 * erase some records each, on any node, also after a crash. The last of these changes the generation again, because a
 * recall that began before the purge may have quoted a purged record since. A purged record leaves a tombstone, a row
 * of `purged`, so that it is never stored again.
 */

/** Maximum number of records deleted in one transaction, which then takes about 100 ms. */
const BATCH = 256;

interface PlacedPurge {
  readonly purge: PurgeReceipt;
  readonly spaceId: number;
  /** The highest number of a record that the purge may erase: later records stay. 0 once no record is left to erase. */
  readonly upto: number;
}

interface PlacedRow extends PurgeRow {
  readonly space_id: number;
  readonly upto: number;
}

/** A space whose generation a purge changes. `id`: the number of the space. */
interface MovedSpace extends Pick<PurgeOrder, 'purgeId' | 'space'> {
  readonly id: number;
}

interface Sizes {
  readonly records: number;
  readonly items: number;
  readonly bytes: number;
  readonly last: number;
}

interface DoomedRow {
  readonly id: number;
  readonly digest: string;
  readonly ref: string;
  readonly text_ref: string | null;
  readonly source_id: number;
  readonly size: number;
}

/** The parts of a purge that differ between SQLite and PostgreSQL. They run in the purge's transaction. */
export interface PurgedIndex {
  /** Creates the space if it is missing. Returns its number; undefined if there are too many spaces. */
  makeSpace(rows: Rows, tenant: string, space: string): Promise<number | undefined>;
  /** Erases the texts of these records, and their words from the index. */
  eraseTexts(
    rows: Rows,
    place: { readonly tenant: string; readonly space: number },
    records: readonly number[],
  ): Promise<void>;
  /** Drops stored counts of words, because they would reveal which words were purged. */
  forgetWords?(rows: Rows, tenant: string, space: number): Promise<unknown>;
}

export class Purges {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #index: PurgedIndex;
  readonly #spaces: Spaces;

  constructor(rows: Rows, tenant: string, index: PurgedIndex) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#index = index;
    this.#spaces = new Spaces(rows, tenant);
  }

  /**
   * Begins a purge. Only returns the purge if it exists already, because this transaction runs again if the result of
   * its commit was lost.
   */
  async begin(order: PurgeOrder): Promise<PurgeReceipt> {
    const { space, scope, isDryRun, now, purgeId } = order;
    const known = await this.find(purgeId);
    if (known !== undefined) return known;
    if (!isDryRun) await this.#index.makeSpace(this.#rows, this.#tenant, space);
    const { id, state: before } = await this.#spaces.find(space);
    const sizes = await this.#sizes(scope, id ?? -1);
    if (!isDryRun && id !== undefined) {
      await this.#moveOn({ purgeId, space, id }, now);
      await this.#index.forgetWords?.(this.#rows, this.#tenant, id);
      const buried = 'digests' in scope ? scope.digests : [];
      await this.#rows.each(
        MEMORY.bury,
        buried.map((digest) => [this.#tenant, id, digest, '', now]),
      );
    }
    if (!isDryRun && order.note !== undefined) {
      await addEvent(this.#rows, this.#tenant, order.note);
    }
    const after = await this.#spaces.state(space);
    const { last: upto, ...counts } = sizes;
    const row: PurgeRow = {
      id: purgeId,
      space,
      scope: JSON.stringify(scope),
      state: isDryRun ? 'dry_run' : 'tombstoned',
      ...counts,
      generation_before: before.generation,
      generation_after: after.generation,
      requested_by: order.requestedBy,
      requested_at: now,
      erased_at: null,
    };
    if (!isDryRun && id !== undefined) {
      const { records, items, bytes } = counts;
      const change = [row.generation_before, row.generation_after, row.requested_by, now] as const;
      await this.#run(
        MEMORY.addPurge,
        purgeId,
        id,
        row.scope,
        records,
        items,
        bytes,
        ...change,
        upto,
      );
    }
    return purgeOf(row);
  }

  /**
   * Erases some of the purge's records. 'empty': no record was left, so call `finish`. 'over': the purge has ended or
   * does not exist.
   */
  async eraseSome(purgeId: string, now: number): Promise<'erased' | 'empty' | 'over'> {
    const placed = await this.#placed(purgeId);
    if (placed?.purge.state !== 'tombstoned') return 'over';
    const { purge, spaceId, upto } = placed;
    // Lock the space: if two nodes erase at once, the second one waits here.
    await this.#rows.get(MEMORY.lockSpaceById, this.#tenant, spaceId);
    const doomed = await this.#rows.all<DoomedRow>(
      MEMORY.doomed,
      this.#tenant,
      spaceId,
      ...valuesOf(purge.scope),
      upto,
      BATCH + 1,
    );
    if (doomed.length > 0) await this.#erase(doomed.slice(0, BATCH), spaceId, now);
    // End it also if `doomed` is empty, because another purge of the space may have erased the last records.
    if (doomed.length <= BATCH && upto > 0) await this.#end(placed, now);
    // A recall may have stored counts of words again since the purge began.
    if (doomed.length === 0) await this.#index.forgetWords?.(this.#rows, this.#tenant, spaceId);
    return doomed.length > 0 ? 'erased' : 'empty';
  }

  async finish(purgeId: string, now: number): Promise<void> {
    await this.#run(MEMORY.finishPurge, purgeId, now);
  }

  async find(purgeId: string): Promise<PurgeReceipt | undefined> {
    return (await this.#placed(purgeId))?.purge;
  }

  async list({ spaces, limit, offset }: PageFilter): Promise<PurgeReceipt[]> {
    const chosen = await this.#spaces.chosen(spaces);
    const values = [this.#tenant, chosen, limit, offset] as const;
    return (await this.#rows.all<PurgeRow>(MEMORY.listPurges, ...values)).map(purgeOf);
  }

  /** Changes the generation again: a recall that began before the purge may have quoted one of its records since. */
  async #end({ purge, spaceId }: PlacedPurge, now: number): Promise<void> {
    const { purge_id: purgeId, space } = purge;
    await this.#moveOn({ purgeId, space, id: spaceId }, now);
    const { generation } = await this.#spaces.state(space);
    await this.#run(MEMORY.movePurge, purgeId, generation);
  }

  async #moveOn({ purgeId, space, id }: MovedSpace, now: number): Promise<void> {
    const tenant = this.#tenant;
    await this.#run(MEMORY.bumpSpace, id);
    await forgetBlocks(this.#rows, { tenant, space, at: now });
    await addChange(this.#rows, { tenant, kind: 'purge', id: purgeId });
  }

  async #erase(doomed: readonly DoomedRow[], space: number, now: number): Promise<void> {
    const ids = doomed.map(({ id }) => id);
    const place = { tenant: this.#tenant, space };
    await this.#index.eraseTexts(this.#rows, place, ids);
    await this.#run(MEMORY.eraseRecords, space, ids);
    await this.#rows.each(
      MEMORY.addPurged,
      doomed.map(({ digest, ref, text_ref }) => [place.tenant, space, digest, ref, text_ref, now]),
    );
    const sources = [...groupBy(doomed, ({ source_id: source }) => String(source))];
    await Promise.all(
      sources.map(([source, records]) =>
        this.#run(MEMORY.shrinkSource, space, Number(source), records.length, sizeOf(records)),
      ),
    );
    await this.#run(
      MEMORY.dropSources,
      space,
      sources.map(([source]) => Number(source)),
    );
    await this.#run(MEMORY.shrinkSpace, space, doomed.length, sizeOf(doomed));
  }

  async #sizes(scope: PurgeScope, space: number): Promise<Sizes> {
    const values = [this.#tenant, space, ...valuesOf(scope)] as const;
    const row = await this.#rows.get<Sizes>(MEMORY.purgeSizes, ...values);
    return row ?? { records: 0, items: 0, bytes: 0, last: 0 };
  }

  async #placed(purgeId: string): Promise<PlacedPurge | undefined> {
    const row = await this.#rows.get<PlacedRow>(MEMORY.findPurge, this.#tenant, purgeId);
    return row && { purge: purgeOf(row), spaceId: row.space_id, upto: row.upto };
  }

  #run(statement: string, ...values: SqlValue[]): Promise<number> {
    return this.#rows.run(statement, this.#tenant, ...values);
  }
}

function sizeOf(records: readonly DoomedRow[]): number {
  return records.reduce((sum, { size }) => sum + size, 0);
}

/** Returns digests, session, source and time of a scope as values of a statement; null for a missing member. */
function valuesOf(scope: PurgeScope): [readonly string[] | null, ...(string | number | null)[]] {
  const before = 'before' in scope ? Date.parse(scope.before) : null;
  return [
    'digests' in scope ? scope.digests : null,
    'session_id' in scope ? scope.session_id : null,
    'source_id' in scope ? sourceNumber(scope.source_id) : null,
    before,
  ];
}
