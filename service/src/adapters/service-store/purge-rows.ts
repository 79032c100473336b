import type { Purge, PurgeScope } from '../../ports/service-store.ts';

/** The row of a purge, for both engines. */

export interface PurgeRow {
  readonly id: string;
  readonly space: string;
  readonly scope: string;
  readonly state: Purge['state'];
  readonly records: number;
  readonly items: number;
  readonly bytes: number;
  readonly generation_before: string;
  readonly generation_after: string;
  readonly requested_by: string;
  readonly requested_at: number;
  readonly erased_at: number | null;
  readonly upto: number;
}

export function scopeOf({ scope }: PurgeRow): PurgeScope {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only begin() writes it.
  return JSON.parse(scope) as PurgeScope;
}

export function purgeOf(row: PurgeRow): Purge {
  return {
    purgeId: row.id,
    space: row.space,
    scope: scopeOf(row),
    state: row.state,
    records: row.records,
    items: row.items,
    bytes: row.bytes,
    generationBefore: row.generation_before,
    generationAfter: row.generation_after,
    requestedBy: row.requested_by,
    requestedAt: row.requested_at,
    ...(row.erased_at === null ? {} : { erasedAt: row.erased_at }),
  };
}
