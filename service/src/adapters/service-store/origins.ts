import type { Origin } from '../../ports/service-store.ts';

/** The origin of a record as columns of a row, for both engines. */
export interface OriginRow {
  readonly digest: string;
  readonly ref: string;
  readonly space: string;
  readonly text_digest: string | null;
  readonly source: number;
  readonly session: string;
  readonly client: string;
  readonly observed_at: number;
  readonly position: number;
  readonly fingerprint: string;
  readonly branch: string | null;
  readonly mark: 'unverified' | null;
}

/** From o (objects), s (spaces) and c (sources) of the file. */
export const ORIGIN_COLUMNS = `o.digest, o.ref, s.name AS space, o.text_digest, o.source, c.session,
  c.client, o.observed_at, o.position, o.fingerprint, o.branch,
  (SELECT m.source FROM object_texts t JOIN records m ON m.id = t.record WHERE t.object = o.id LIMIT 1)
    AS mark`;

export const ORIGIN_JOINS = 'JOIN spaces s ON s.id = o.space JOIN sources c ON c.id = o.source';

export function originOf(row: OriginRow): Origin {
  return {
    digest: row.digest,
    ref: row.ref,
    space: row.space,
    ...(row.text_digest === null ? {} : { textDigest: row.text_digest }),
    sourceId: sourceIdOf(row.source),
    session: row.session,
    client: row.client,
    observedAt: row.observed_at,
    position: row.position,
    fingerprint: row.fingerprint,
    ...(row.branch === null ? {} : { branch: row.branch }),
    ...(row.mark === null ? {} : { source: row.mark }),
  };
}

const SOURCE_START = 'src_';

export function sourceIdOf(id: number): string {
  return `${SOURCE_START}${id}`;
}

/** -1, which no source has, for what is no source's id. */
export function sourceNumber(sourceId: string): number {
  const digits = /^src_(\d{1,15})$/.exec(sourceId)?.[1];
  return digits === undefined ? -1 : Number(digits);
}
