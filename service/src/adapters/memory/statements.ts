/**
 * The statements on spaces, records and purges that SQLite and PostgreSQL share. Each names the tenant, as $1, except
 * `health` and `unfinishedPurges`. For captures, the index and recalls each database also has statements of its own.
 */

/** Columns of a record and its origin. Tables: r (objects), s (tenant_spaces), c (sources). */
const ORIGIN = `r.digest, r.ref, s.name AS space, r.text_digest, r.source_id AS source, c.session, c.client,
  r.observed_at, r.position, r.fingerprint, r.branch,
  (SELECT m.source FROM texts m WHERE m.tenant_id = $1 AND m.space_id = r.space_id
    AND m.record_id = r.id ORDER BY m.n LIMIT 1) AS mark,
  (SELECT m.last_from FROM texts m WHERE m.tenant_id = $1 AND m.space_id = r.space_id
    AND m.record_id = r.id ORDER BY m.n LIMIT 1) AS last_from`;

const ORIGIN_JOINS = `JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = r.space_id
  JOIN sources c ON c.tenant_id = $1 AND c.space_id = r.space_id AND c.id = r.source_id`;

/** Selects the number of the space whose name is $2, which saves a query before the statement. */
export const SPACE_NAMED =
  '(SELECT s.id FROM tenant_spaces s WHERE s.tenant_id = $1 AND s.name = $2)';

/** Condition of a purge's scope; its own values are $3 to $6. */
const SCOPE = `($3::text[] IS NULL OR r.digest = ANY($3))
  AND ($4::text IS NULL OR r.source_id IN (SELECT c.id FROM sources c
    WHERE c.tenant_id = $1 AND c.space_id = $2 AND c.session = $4))
  AND ($5::bigint IS NULL OR r.source_id = $5)
  AND ($6::bigint IS NULL OR r.observed_at < $6)`;

/**
 * Condition of a page of items; its own values are $3 to $9. Without a kind, a source and references it reads only
 * `texts`. With one of them it also reads the record of each text, even of texts that are not on the page.
 */
const LISTED = `t.tenant_id = $1 AND t.space_id = ANY($2::integer[])
        AND ($3::text IS NULL OR t.role = $3) AND ($4::text IS NULL OR t.session = $4)
        AND ($5::bigint IS NULL OR t.at >= $5) AND ($6::bigint IS NULL OR t.at <= $6)
        AND (($7::text IS NULL AND $8::bigint IS NULL AND $9::text[] IS NULL)
          OR EXISTS (SELECT 1 FROM objects r WHERE r.tenant_id = $1 AND r.space_id = t.space_id
            AND r.id = t.record_id AND ($7 IS NULL OR r.kind = $7)
            AND ($8 IS NULL OR r.source_id = $8)
            AND ($9 IS NULL OR r.ref = ANY($9) OR r.text_ref = ANY($9))))`;
const PAGE_COLUMNS = 't.space_id, t.record_id, t.n, t.message, t.role, t.at';
const ITEMS_OF_PAGE = `SELECT r.id AS record_id, t.message, r.kind, r.created_at, t.role, r.bytes,
      ${ORIGIN}
    FROM page t
    JOIN objects r ON r.tenant_id = $1 AND r.space_id = t.space_id AND r.id = t.record_id
    ${ORIGIN_JOINS}`;

/** Columns of a purge. Tables: p (purges), s (tenant_spaces). */
const PURGE = `p.id, s.name AS space, p.scope, p.state, p.records, p.items, p.bytes, p.generation_before,
  p.generation_after, p.requested_by, p.requested_at, p.erased_at`;

export const MEMORY = {
  spaceState: `SELECT e.value AS epoch, s.id, s.counter, s.seq, s.records, s.bytes
    FROM service_meta e LEFT JOIN tenant_spaces s ON s.tenant_id = $1 AND s.name = $2
    WHERE e.name = 'epoch'`,
  /** Records that the plan still allows; null without a limit. */
  planRoom: `SELECT CASE WHEN p.most IS NULL THEN NULL ELSE p.most
      - (SELECT coalesce(sum(s.records), 0)::bigint FROM tenant_spaces s WHERE s.tenant_id = $1) END AS room
    FROM (SELECT (l.limits::json ->> 'records')::bigint AS most FROM tenants t
      JOIN plans l ON l.name = t.plan WHERE t.tenant_id = $1) AS p`,
  lockSpaceById: `SELECT id FROM tenant_spaces WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
  spaceNames: `SELECT id, name FROM tenant_spaces WHERE tenant_id = $1`,
  spacesNamed: `SELECT id FROM tenant_spaces WHERE tenant_id = $1 AND name = $2`,
  shrinkSpace: `UPDATE tenant_spaces SET records = records - $3, bytes = bytes - $4
    WHERE tenant_id = $1 AND id = $2`,
  bumpSpace: `UPDATE tenant_spaces SET counter = counter + 1 WHERE tenant_id = $1 AND id = $2`,

  /** Returns which digests of a batch the space has purged, and which records, references and texts it already has. */
  known: `SELECT 'purged' AS what, p.digest AS name, 0 AS id FROM purged p
      WHERE p.tenant_id = $1 AND p.space_id = ${SPACE_NAMED} AND p.digest = ANY($3::text[])
    UNION ALL SELECT 'record', r.digest, r.id FROM objects r
      WHERE r.tenant_id = $1 AND r.space_id = ${SPACE_NAMED} AND r.digest = ANY($3::text[])
    UNION ALL SELECT 'ref', r.ref, r.id FROM objects r
      WHERE r.tenant_id = $1 AND r.space_id = ${SPACE_NAMED} AND r.ref = ANY($4::text[])
    UNION ALL SELECT 'text', t.digest, t.n FROM texts t
      WHERE t.tenant_id = $1 AND t.space_id = ${SPACE_NAMED} AND t.digest = ANY($5::text[])`,
  recordsForProof: `SELECT r.digest, r.text_digest, r.ref, r.redactions, r.bytes FROM objects r
    WHERE r.tenant_id = $1 AND r.space_id = ${SPACE_NAMED} AND (r.digest = ANY($3::text[])
      OR (r.text_ref = ANY($4::text[]) AND r.text_digest = ANY($5::text[]))) ORDER BY r.id`,
  purgedForProof: `SELECT p.digest, p.text_ref FROM purged p
    WHERE p.tenant_id = $1 AND p.space_id = ${SPACE_NAMED}
      AND (p.digest = ANY($3::text[]) OR p.text_ref = ANY($4::text[]))`,
  findRecords: `SELECT r.kind, r.tool_name, r.size, ${ORIGIN}, r.bytes
    FROM objects r ${ORIGIN_JOINS}
    WHERE r.tenant_id = $1 AND r.space_id = ANY($2::integer[])
      AND (r.digest = $3 OR r.ref = $4
        OR (r.text_ref = $5 AND ($6::text IS NULL OR r.text_digest = $6)))
    ORDER BY r.id LIMIT $7`,
  wasPurged: `SELECT 1 AS found FROM purged p WHERE p.tenant_id = $1
    AND p.space_id = ANY($2::integer[])
    AND (p.digest = $3 OR p.ref = $4 OR p.text_ref = $5) LIMIT 1`,

  listItems: `WITH page AS MATERIALIZED (
      SELECT ${PAGE_COLUMNS} FROM texts t WHERE ${LISTED}
      ORDER BY t.at DESC, t.record_id DESC, t.n DESC LIMIT $10 OFFSET $11)
    ${ITEMS_OF_PAGE}
    ORDER BY t.at DESC, t.record_id DESC, t.n DESC`,
  itemOfText: `WITH page AS (SELECT ${PAGE_COLUMNS} FROM texts t
      WHERE t.tenant_id = $1 AND t.space_id = ${SPACE_NAMED} AND t.digest = $3)
    ${ITEMS_OF_PAGE}`,
  listOutputs: `SELECT r.id AS record_id, r.created_at, r.bytes, ${ORIGIN}
    FROM objects r ${ORIGIN_JOINS}
    WHERE r.tenant_id = $1 AND r.space_id = ANY($2::integer[]) AND r.kind = 'tool_output'
      AND ($3::text IS NULL OR c.session = $3)
      AND ($4::bigint IS NULL OR (r.observed_at, r.id) < ($4, $5::bigint))
    ORDER BY r.observed_at DESC, r.id DESC LIMIT $6`,
  digestOfItem: `SELECT r.digest FROM objects r
    JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = r.space_id
    WHERE r.tenant_id = $1 AND s.name = $2 AND r.id = $3`,
  textsOfRecords: `SELECT t.digest FROM texts t
    JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = t.space_id AND s.name = ANY($2::text[])
    JOIN objects r ON r.tenant_id = $1 AND r.space_id = t.space_id AND r.id = t.record_id
    WHERE t.tenant_id = $1 AND r.digest = ANY($3::text[])`,
  listSources: `SELECT c.id, c.session, c.client, c.first_seen, c.last_seen, c.records, c.bytes
    FROM sources c JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = c.space_id
    WHERE c.tenant_id = $1 AND c.space_id = ANY($2::integer[])
    ORDER BY c.last_seen DESC, c.id DESC LIMIT $3 OFFSET $4`,

  purgeSizes: `SELECT count(*) AS records, coalesce(sum(r.size), 0)::bigint AS bytes,
      coalesce(max(r.id), 0) AS last,
      coalesce(sum((SELECT count(*) FROM texts t WHERE t.tenant_id = $1 AND t.space_id = $2
        AND t.record_id = r.id)), 0)::bigint AS items
    FROM objects r WHERE r.tenant_id = $1 AND r.space_id = $2 AND ${SCOPE}`,
  addPurge: `INSERT INTO purges (tenant_id, id, space_id, scope, state, records, items, bytes,
      generation_before, generation_after, requested_by, requested_at, upto)
    VALUES ($1, $2, $3, $4, 'tombstoned', $5, $6, $7, $8, $9, $10, $11, $12)`,
  findPurge: `SELECT ${PURGE}, p.space_id, p.upto FROM purges p
    JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = p.space_id
    WHERE p.tenant_id = $1 AND p.id = $2`,
  listPurges: `SELECT ${PURGE} FROM purges p
    JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = p.space_id
    WHERE p.tenant_id = $1 AND p.space_id = ANY($2::integer[])
    ORDER BY p.number DESC LIMIT $3 OFFSET $4`,
  bury: `INSERT INTO purged (tenant_id, space_id, digest, ref, at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING`,
  doomed: `SELECT r.id, r.digest, r.ref, r.text_ref, r.source_id, r.size FROM objects r
    WHERE r.tenant_id = $1 AND r.space_id = $2 AND ${SCOPE} AND r.id <= $7
    ORDER BY r.id LIMIT $8`,
  eraseRecords: `DELETE FROM objects
    WHERE tenant_id = $1 AND space_id = $2 AND id = ANY($3::bigint[])`,
  addPurged: `INSERT INTO purged (tenant_id, space_id, digest, ref, text_ref, at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant_id, space_id, digest) DO UPDATE SET ref = excluded.ref,
      text_ref = excluded.text_ref`,
  shrinkSource: `UPDATE sources SET records = records - $4, bytes = bytes - $5
    WHERE tenant_id = $1 AND space_id = $2 AND id = $3`,
  dropSources: `DELETE FROM sources WHERE tenant_id = $1 AND space_id = $2
    AND id = ANY($3::bigint[]) AND records = 0`,
  /** Notes that no record of a purge is left. An `upto` of 0 is before every record. */
  movePurge: `UPDATE purges SET generation_after = $3, upto = 0 WHERE tenant_id = $1 AND id = $2`,
  erasingSpaces: `SELECT s.id, s.name FROM purges p
    JOIN tenant_spaces s ON s.tenant_id = $1 AND s.id = p.space_id
    WHERE p.tenant_id = $1 AND p.state = 'tombstoned' AND p.upto > 0`,
  finishPurge: `UPDATE purges SET state = 'erased', erased_at = $3
    WHERE tenant_id = $1 AND id = $2 AND state = 'tombstoned'`,
  /** Counts of all tenants, for the operator. */
  health: `SELECT count(*) AS spaces, coalesce(sum(s.records), 0)::bigint AS records,
      (SELECT count(*) FROM service_keys WHERE revoked_at IS NULL) AS keys,
      (SELECT count(*) FROM tenants WHERE status <> 'deleted') AS tenants,
      (SELECT count(*) FROM providers) AS providers,
      coalesce((SELECT max(created_at) FROM service_keys), 0)::bigint AS newest_key,
      coalesce((SELECT created_at FROM objects ORDER BY id DESC LIMIT 1), 0)::bigint AS newest_record
    FROM tenant_spaces s`,
  /** Purges of all tenants that have not finished: they still run, or a crash has interrupted them. */
  unfinishedPurges: `SELECT tenant_id AS tenant, id AS "purgeId" FROM purges
    WHERE state = 'tombstoned' ORDER BY number`,
} as const;

/**
 * Writes a query for texts that contain all words. Texts with more of the words in one passage come first. $12 is the
 * number of words. `held`: the database's own query for the passages with each word, with the parameters from $13 on.
 * Its rows have space_id, text_n, n of the passage, and `place`, the index of the word.
 */
export function searchItems(held: string): string {
  return `WITH held AS (${held}),
    best AS (
      SELECT b.space_id, b.text_n, max(b.words) AS words
      FROM (SELECT space_id, text_n, n, count(*) AS words FROM held GROUP BY space_id, text_n, n) b
      GROUP BY b.space_id, b.text_n),
    whole AS (
      SELECT space_id, text_n FROM held GROUP BY space_id, text_n
      HAVING count(DISTINCT place) = $12::integer),
    page AS MATERIALIZED (
      SELECT ${PAGE_COLUMNS}, best.words FROM whole
      JOIN best ON best.space_id = whole.space_id AND best.text_n = whole.text_n
      JOIN texts t ON t.space_id = whole.space_id AND t.n = whole.text_n
      WHERE ${LISTED}
      ORDER BY best.words DESC, t.at DESC, t.record_id DESC, t.n DESC LIMIT $10 OFFSET $11)
    ${ITEMS_OF_PAGE}
    ORDER BY t.words DESC, t.at DESC, t.record_id DESC, t.n DESC`;
}
