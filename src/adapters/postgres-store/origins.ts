import type { Origin } from '../../ports/service-store.ts';
import { sourceIdOf } from '../service-store/origins.ts';

/** Where a record came from, as columns of a row. */
export interface OriginRow {
  readonly digest: string;
  readonly ref: string;
  readonly space: string;
  readonly text_digest: string | null;
  readonly source_id: number;
  readonly session: string;
  readonly client: string;
  readonly observed_at: number;
  readonly position: number;
  readonly fingerprint: string;
  readonly branch: string | null;
  readonly mark: 'unverified' | null;
}

export function originOf(row: OriginRow): Origin {
  return {
    digest: row.digest,
    ref: row.ref,
    space: row.space,
    ...(row.text_digest === null ? {} : { textDigest: row.text_digest }),
    sourceId: sourceIdOf(row.source_id),
    session: row.session,
    client: row.client,
    observedAt: row.observed_at,
    position: row.position,
    fingerprint: row.fingerprint,
    ...(row.branch === null ? {} : { branch: row.branch }),
    ...(row.mark === null ? {} : { source: row.mark }),
  };
}
