import type { PageFilter, Purge, PurgeOrder, PurgeScope } from '../../ports/service-store.ts';
import { sourceNumber, type PurgeRow, purgeOf, scopeOf } from '../service-store/row-shapes.ts';
import type { Rows, SqlValue } from './rows.ts';
import { addChange, addEvent } from '../control/changes.ts';
import { forgetBlocks } from './ledger.ts';
import { Spaces } from './spaces.ts';
import { MEMORY } from './statements/memory.ts';

/**
 * Purges of one tenant. One transaction changes the generation and records the order; small ones
 * erase the records, on whichever node comes to it, and continue after a crash. The last one changes the
 * generation again: whoever recalled or asked in between sees that. A purged record leaves a tombstone. Its bytes leave the disk when PostgreSQL cleans the table up.
 */

/** Records a transaction: about 100 ms. */
const BATCH = 256;

interface PlacedPurge extends PurgeRow {
  readonly space_id: number;
}

type MovedBy = Pick<PurgeOrder, 'purgeId' | 'space'>;

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

export class Purges {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #spaces: Spaces;

  constructor(rows: Rows, tenant: string) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#spaces = new Spaces(rows, tenant);
  }

  /**
   * A recorded order is returned as it is, because the confirmation of its commit may have been
   * lost.
   */
  async begin(order: PurgeOrder): Promise<Purge> {
    const { space, scope, isDryRun, now, purgeId } = order;
    const known = await this.find(purgeId);
    if (known !== undefined) return known;
    const made = isDryRun ? await this.#spaces.state(space) : await this.#spaces.make(space);
    const before = await this.#spaces.state(space);
    const id = made?.id;
    const sizes = await this.#sizes(scope, id ?? -1);
    if (!isDryRun && id !== undefined) {
      await this.#moveOn(order, id, now);
      await this.#run(MEMORY.dropCounts, id);
      if ('digests' in scope) await this.#run(MEMORY.bury, id, scope.digests, now);
    }
    if (!isDryRun && order.note !== undefined) {
      await addEvent(this.#rows, this.#tenant, order.note);
    }
    const after = await this.#spaces.state(space);
    const purge: Purge = {
      purgeId,
      space,
      scope,
      state: isDryRun ? 'dry_run' : 'tombstoned',
      records: sizes.records,
      items: sizes.items,
      bytes: sizes.bytes,
      generationBefore: before.generation,
      generationAfter: after.generation,
      requestedBy: order.requestedBy,
      requestedAt: now,
    };
    if (!isDryRun && id !== undefined) {
      await this.#keep(purge, id, sizes.last);
    }
    return purge;
  }

  /** True when nothing is left of it. */
  async continue(purgeId: string, now: number): Promise<boolean> {
    const row = await this.#row(purgeId);
    if (row === undefined || row.state !== 'tombstoned') return true;
    // Two nodes may erase at once: the second waits here.
    await this.#rows.get(MEMORY.lockSpaceById, this.#tenant, row.space_id);
    const doomed = await this.#rows.all<DoomedRow>(
      MEMORY.doomed,
      this.#tenant,
      row.space_id,
      ...valuesOf(scopeOf(row)),
      row.upto,
      BATCH + 1,
    );
    if (doomed.length > 0) {
      await this.#erase(doomed.slice(0, BATCH), row.space_id, now);
      if (doomed.length <= BATCH) await this.#end(row, now);
      return false;
    }
    // A recall may have counted once more in between.
    await this.#run(MEMORY.dropCounts, row.space_id);
    await this.#run(MEMORY.finishPurge, purgeId, now);
    return true;
  }

  async find(purgeId: string): Promise<Purge | undefined> {
    const row = await this.#row(purgeId);
    return row === undefined ? undefined : purgeOf(row);
  }

  async list({ spaces, limit, offset }: PageFilter): Promise<Purge[]> {
    const chosen = await this.#spaces.chosen(spaces);
    const values = [this.#tenant, chosen, limit, offset] as const;
    return (await this.#rows.all<PurgeRow>(MEMORY.listPurges, ...values)).map(purgeOf);
  }

  /** A block that was recalled while some records were left may quote one of them. */
  async #end({ id: purgeId, space, space_id }: PlacedPurge, now: number): Promise<void> {
    await this.#moveOn({ purgeId, space }, space_id, now);
    const { generation } = await this.#spaces.state(space);
    await this.#run(MEMORY.movePurge, purgeId, generation);
  }

  async #moveOn({ purgeId, space }: MovedBy, id: number, now: number): Promise<void> {
    const tenant = this.#tenant;
    await this.#run(MEMORY.bumpSpace, id);
    await forgetBlocks(this.#rows, { tenant, space, at: now });
    await addChange(this.#rows, { tenant, kind: 'purge', id: purgeId });
  }

  async #erase(doomed: readonly DoomedRow[], space: number, now: number): Promise<void> {
    const ids = doomed.map(({ id }) => id);
    const gone = await this.#rows.get<{ passages: number; terms: number }>(
      MEMORY.erasePassages,
      this.#tenant,
      space,
      ids,
    );
    await this.#run(MEMORY.eraseTexts, space, ids);
    await this.#run(MEMORY.eraseRecords, space, ids);
    await this.#run(
      MEMORY.addPurged,
      space,
      now,
      doomed.map(({ digest }) => digest),
      doomed.map(({ ref }) => ref),
      doomed.map(({ text_ref }) => text_ref),
    );
    const sums = new Map<number, { records: number; bytes: number }>();
    for (const { source_id, size } of doomed) {
      const sum = sums.get(source_id) ?? { records: 0, bytes: 0 };
      sums.set(source_id, { records: sum.records + 1, bytes: sum.bytes + size });
    }
    const sources = [...sums.keys()];
    const taken = [...sums.values()];
    await this.#run(
      MEMORY.shrinkSources,
      space,
      sources,
      taken.map(({ records }) => records),
      taken.map(({ bytes }) => bytes),
    );
    await this.#run(MEMORY.dropSources, space, sources);
    const bytes = taken.reduce((sum, one) => sum + one.bytes, 0);
    const values = [doomed.length, bytes, gone?.passages ?? 0, gone?.terms ?? 0];
    await this.#run(MEMORY.shrinkSpace, space, ...values);
  }

  async #sizes(scope: PurgeScope, space: number): Promise<Sizes> {
    const values = [this.#tenant, space, ...valuesOf(scope)] as const;
    const row = await this.#rows.get<Sizes>(MEMORY.purgeSizes, ...values);
    return row ?? { records: 0, items: 0, bytes: 0, last: 0 };
  }

  #row(purgeId: string): Promise<PlacedPurge | undefined> {
    return this.#rows.get<PlacedPurge>(MEMORY.findPurge, this.#tenant, purgeId);
  }

  #keep(purge: Purge, space: number, upto: number): Promise<number> {
    return this.#run(
      MEMORY.addPurge,
      purge.purgeId,
      space,
      JSON.stringify(purge.scope),
      purge.records,
      purge.items,
      purge.bytes,
      purge.generationBefore,
      purge.generationAfter,
      purge.requestedBy,
      purge.requestedAt,
      upto,
    );
  }

  #run(statement: string, ...values: SqlValue[]): Promise<number> {
    return this.#rows.run(statement, this.#tenant, ...values);
  }
}

/** Digests, session, source, time; null where the scope does not ask for it. */
function valuesOf(scope: PurgeScope): [readonly string[] | null, ...(string | number | null)[]] {
  const before = 'before' in scope ? Date.parse(scope.before) : null;
  return [
    'digests' in scope ? scope.digests : null,
    'session_id' in scope ? scope.session_id : null,
    'source_id' in scope ? sourceNumber(scope.source_id) : null,
    before,
  ];
}
