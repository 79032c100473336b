/** The statements on spaces, records and purges. Every one of them names the tenant. */

/** Columns of a record and where it came from: r (records), s (spaces), c (sources). */
const ORIGIN = `r.digest, r.ref, s.name AS space, r.text_digest, r.source_id AS source, c.session, c.client,
  r.observed_at, r.position, r.fingerprint, r.branch,
  (SELECT m.source FROM texts m WHERE m.tenant_id = $1 AND m.space_id = r.space_id
    AND m.record_id = r.id ORDER BY m.n LIMIT 1) AS mark`;

const ORIGIN_JOINS = `JOIN spaces s ON s.tenant_id = $1 AND s.id = r.space_id
  JOIN sources c ON c.tenant_id = $1 AND c.space_id = r.space_id AND c.id = r.source_id`;

/** One of a record's names, in $3 to $7: see names.ts. */
const NAMED = `(r.digest = $3 OR r.ref = $4
  OR (r.text_ref >= $5 AND r.text_ref <= $6 AND ($7::text IS NULL OR r.text_digest = $7)))`;

/** The number of the space that $2 names: no earlier query has to read it. */
const SPACE_NAMED = '(SELECT s.id FROM spaces s WHERE s.tenant_id = $1 AND s.name = $2)';

/** A purge's scope, in $3 to $6. */
const SCOPE = `($3::text[] IS NULL OR r.digest = ANY($3))
  AND ($4::text IS NULL OR r.source_id IN (SELECT c.id FROM sources c
    WHERE c.tenant_id = $1 AND c.space_id = $2 AND c.session = $4))
  AND ($5::bigint IS NULL OR r.source_id = $5)
  AND ($6::bigint IS NULL OR r.observed_at < $6)`;

/** A page of items, in $3 to $9: chosen among the texts, so that records are read for its rows only. */
const LISTED = `t.tenant_id = $1 AND t.space_id = ANY($2::integer[])
        AND ($3::text IS NULL OR t.role = $3) AND ($4::text IS NULL OR t.session = $4)
        AND ($5::bigint IS NULL OR t.at >= $5) AND ($6::bigint IS NULL OR t.at <= $6)
        AND (($7::text IS NULL AND $8::bigint IS NULL AND $9::text[] IS NULL)
          OR EXISTS (SELECT 1 FROM records r WHERE r.tenant_id = $1 AND r.space_id = t.space_id
            AND r.id = t.record_id AND ($7 IS NULL OR r.kind = $7)
            AND ($8 IS NULL OR r.source_id = $8)
            AND ($9 IS NULL OR r.ref = ANY($9) OR r.text_ref = ANY($9))))`;
const PAGE_COLUMNS = 't.space_id, t.record_id, t.n, t.message, t.role, t.at';
const ITEMS_OF_PAGE = `SELECT r.id AS record_id, t.message, r.kind, r.created_at, t.role, r.bytes,
      ${ORIGIN}
    FROM page t
    JOIN records r ON r.tenant_id = $1 AND r.space_id = t.space_id AND r.id = t.record_id
    ${ORIGIN_JOINS}`;

export const MEMORY = {
  spaceState: `SELECT e.value AS epoch, s.id, s.counter, s.seq, s.records
    FROM service_meta e LEFT JOIN spaces s ON s.tenant_id = $1 AND s.name = $2 WHERE e.name = 'epoch'`,
  lockSpace: `SELECT (SELECT e.value FROM service_meta e WHERE e.name = 'epoch') AS epoch, id, counter, seq,
      records, bytes, next_passage, next_text, next_conversation
    FROM spaces WHERE tenant_id = $1 AND name = $2 FOR UPDATE`,
  /** Records that the plan still allows; null without such a limit. */
  planRoom: `SELECT CASE WHEN p.most IS NULL THEN NULL ELSE p.most
      - (SELECT coalesce(sum(s.records), 0)::bigint FROM spaces s WHERE s.tenant_id = $1) END AS room
    FROM (SELECT (l.limits::json ->> 'records')::bigint AS most FROM tenants t
      JOIN plans l ON l.name = t.plan WHERE t.tenant_id = $1) AS p`,
  lockSpaceById: `SELECT id FROM spaces WHERE tenant_id = $1 AND id = $2 FOR UPDATE`,
  makeSpace: `INSERT INTO spaces (tenant_id, id, name)
    SELECT $1, coalesce(max(id), 0) + 1, $2 FROM spaces WHERE tenant_id = $1
    HAVING count(*) < $3::bigint ON CONFLICT DO NOTHING`,
  spacesNamed: `SELECT id FROM spaces WHERE tenant_id = $1 AND name = $2`,
  spacesLike: `SELECT id FROM spaces WHERE tenant_id = $1
    AND EXISTS (SELECT 1 FROM unnest($2::text[]) AS g(glob) WHERE name LIKE g.glob)`,
  growSpace: `UPDATE spaces SET seq = seq + $3, records = records + $3, bytes = bytes + $4,
      passages = passages + $5, terms = terms + $6, next_passage = next_passage + $5,
      next_text = next_text + $7, next_conversation = next_conversation + $8
    WHERE tenant_id = $1 AND id = $2`,
  shrinkSpace: `UPDATE spaces SET records = records - $3, bytes = bytes - $4,
      passages = passages - $5, terms = terms - $6 WHERE tenant_id = $1 AND id = $2`,
  /** Counts of words tell of what is purged, too. */
  dropCounts: `DELETE FROM word_counts WHERE tenant_id = $1 AND space_id = $2`,
  bumpSpace: `UPDATE spaces SET counter = counter + 1 WHERE tenant_id = $1 AND id = $2`,

  /** Everything that a batch has to know of the space, in one answer. */
  known: `SELECT 'purged' AS what, p.digest AS name, 0 AS id FROM purged p
      WHERE p.tenant_id = $1 AND p.space_id = ${SPACE_NAMED} AND p.digest = ANY($3::text[])
    UNION ALL SELECT 'record', r.digest, r.id FROM records r
      WHERE r.tenant_id = $1 AND r.space_id = ${SPACE_NAMED} AND r.digest = ANY($3::text[])
    UNION ALL SELECT 'ref', r.ref, r.id FROM records r
      WHERE r.tenant_id = $1 AND r.space_id = ${SPACE_NAMED} AND r.ref = ANY($4::text[])
    UNION ALL SELECT 'text', t.digest, t.n FROM texts t
      WHERE t.tenant_id = $1 AND t.space_id = ${SPACE_NAMED} AND t.digest = ANY($5::text[])
    UNION ALL SELECT 'conversation', v.key, v.id FROM conversations v
      WHERE v.tenant_id = $1 AND v.space_id = ${SPACE_NAMED} AND v.key = ANY($6::text[])`,
  addSources: `INSERT INTO sources (tenant_id, space_id, session, client, first_seen, last_seen,
      records, bytes)
    SELECT $1, $2, n.* FROM unnest($3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
      $8::bigint[]) AS n(session, client, first_seen, last_seen, records, bytes)
    ON CONFLICT (tenant_id, space_id, session, client) DO UPDATE SET
      records = sources.records + excluded.records, bytes = sources.bytes + excluded.bytes,
      first_seen = least(sources.first_seen, excluded.first_seen),
      last_seen = greatest(sources.last_seen, excluded.last_seen)`,
  /** With the sources that addSources has made. */
  addRecords: `INSERT INTO records (tenant_id, space_id, digest, ref, kind, text_digest, text_ref,
      source_id, observed_at, created_at, position, fingerprint, branch, dialect, tool_name,
      redactions, seq, size, bytes)
    SELECT $1, $2, n.digest, n.ref, n.kind, n.text_digest, n.text_ref,
      (SELECT c.id FROM sources c WHERE c.tenant_id = $1 AND c.space_id = $2
        AND c.session = n.session AND c.client = n.client),
      n.observed_at, $3, n.position, n.fingerprint, n.branch, n.dialect, n.tool_name, n.redactions,
      n.seq, length(n.bytes), n.bytes
    FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
      $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[], $16::text[],
      $17::integer[], $18::bigint[], $19::bytea[]) AS n(digest, ref, kind, text_digest, text_ref,
      session, client, observed_at, position, fingerprint, branch, dialect, tool_name, redactions,
      seq, bytes)
    ORDER BY n.seq`,
  addConversations: `INSERT INTO conversations (tenant_id, space_id, id, key)
    SELECT $1, $2, n.* FROM unnest($3::bigint[], $4::text[]) AS n(id, key)`,
  /** Their records are those that addRecords has made. */
  addTexts: `INSERT INTO texts (tenant_id, space_id, n, record_id, message, digest, ref, role,
      session, conversation_id, at, branch, source)
    SELECT $1, $2, n.n,
      (SELECT r.id FROM records r WHERE r.tenant_id = $1 AND r.space_id = $2 AND r.digest = n.record),
      n.message, n.digest, n.ref, n.role, n.session, n.conversation_id, n.at, n.branch, n.source
    FROM unnest($3::bigint[], $4::text[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::text[],
      $10::bigint[], $11::bigint[], $12::text[], $13::text[]) AS n(n, record, message, digest, ref,
      role, session, conversation_id, at, branch, source)`,
  /** The keys of all passages follow one another: a passage has the next n.words of them. */
  addPassages: `INSERT INTO passages (tenant_id, space_id, n, text_n, conversation_id, position,
      start_at, end_at, keys)
    SELECT $1, $2, n.n, n.text_n, n.conversation_id, n.position, n.start_at, n.end_at,
      ($10::bigint[])[n.behind - n.words + 1 : n.behind]
    FROM (SELECT m.*, sum(m.words) OVER (ORDER BY m.n)::integer AS behind
      FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::integer[],
        $8::integer[], $9::integer[])
        AS m(n, text_n, conversation_id, position, start_at, end_at, words)) n`,
  renewTexts: `UPDATE texts SET at = n.at FROM unnest($3::text[], $4::bigint[]) AS n(digest, at)
    WHERE texts.tenant_id = $1 AND texts.space_id = $2 AND texts.digest = n.digest
      AND texts.at < n.at`,
  renewRecords: `UPDATE records SET observed_at = n.at
    FROM unnest($3::text[], $4::bigint[]) AS n(digest, at)
    WHERE records.tenant_id = $1 AND records.space_id = $2 AND records.digest = n.digest
      AND records.observed_at < n.at`,
  verifyTexts: `UPDATE texts SET source = NULL
    WHERE tenant_id = $1 AND space_id = $2 AND digest = ANY($3::text[]) AND source IS NOT NULL`,

  recordsForProof: `SELECT r.digest, r.text_digest, r.ref, r.redactions, r.bytes FROM records r
    WHERE r.tenant_id = $1 AND r.space_id = ${SPACE_NAMED} AND (r.digest = ANY($3::text[])
      OR (r.text_ref = ANY($4::text[]) AND r.text_digest = ANY($5::text[]))) ORDER BY r.id`,
  purgedForProof: `SELECT p.digest, p.text_ref FROM purged p
    WHERE p.tenant_id = $1 AND p.space_id = ${SPACE_NAMED}
      AND (p.digest = ANY($3::text[]) OR p.text_ref = ANY($4::text[]))`,
  findRecords: `SELECT r.kind, r.tool_name, r.size, ${ORIGIN}, r.bytes
    FROM records r ${ORIGIN_JOINS}
    WHERE r.tenant_id = $1 AND r.space_id = ANY($2::integer[]) AND ${NAMED}
    ORDER BY r.id LIMIT $8`,
  nameRecords: `SELECT s.name AS space, r.digest, r.text_ref FROM records r
    JOIN spaces s ON s.tenant_id = $1 AND s.id = r.space_id
    WHERE r.tenant_id = $1 AND r.space_id = ANY($2::integer[]) AND ${NAMED}
    ORDER BY r.text_ref NULLS FIRST, r.id LIMIT $8`,
  wasPurged: `SELECT 1 AS found FROM purged p WHERE p.tenant_id = $1
    AND p.space_id = ANY($2::integer[])
    AND (p.digest = $3 OR p.ref = $4 OR p.text_ref = $5) LIMIT 1`,

  listItems: `WITH page AS MATERIALIZED (
      SELECT ${PAGE_COLUMNS} FROM texts t WHERE ${LISTED}
      ORDER BY t.at DESC, t.record_id DESC, t.n DESC LIMIT $10 OFFSET $11)
    ${ITEMS_OF_PAGE}
    ORDER BY t.at DESC, t.record_id DESC, t.n DESC`,
  /** Texts with all the words; those first that hold most of them in one passage. */
  searchItems: `WITH held AS (
      SELECT p.space_id, p.text_n, p.n, w.place
      FROM unnest($12::integer[], $13::bigint[], $14::integer[]) AS w(space_id, key, place)
      JOIN passages p ON p.tenant_id = $1 AND p.space_id + 0 = w.space_id AND p.keys @> ARRAY[w.key]),
    best AS (
      SELECT b.space_id, b.text_n, max(b.words) AS words
      FROM (SELECT space_id, text_n, n, count(*) AS words FROM held GROUP BY space_id, text_n, n) b
      GROUP BY b.space_id, b.text_n),
    whole AS (
      SELECT space_id, text_n FROM held GROUP BY space_id, text_n
      HAVING count(DISTINCT place) = $15::integer),
    page AS MATERIALIZED (
      SELECT ${PAGE_COLUMNS}, best.words FROM whole
      JOIN best ON best.space_id = whole.space_id AND best.text_n = whole.text_n
      JOIN texts t ON t.space_id = whole.space_id AND t.n = whole.text_n
      WHERE ${LISTED}
      ORDER BY best.words DESC, t.at DESC, t.record_id DESC, t.n DESC LIMIT $10 OFFSET $11)
    ${ITEMS_OF_PAGE}
    ORDER BY t.words DESC, t.at DESC, t.record_id DESC, t.n DESC`,
  listOutputs: `SELECT r.id AS record_id, r.created_at, r.bytes, ${ORIGIN}
    FROM records r ${ORIGIN_JOINS}
    WHERE r.tenant_id = $1 AND r.space_id = ANY($2::integer[]) AND r.kind = 'tool_output'
      AND ($3::text IS NULL OR c.session = $3)
      AND ($4::bigint IS NULL OR (r.observed_at, r.id) < ($4, $5::bigint))
    ORDER BY r.observed_at DESC, r.id DESC LIMIT $6`,
  digestOfItem: `SELECT r.digest FROM records r
    JOIN spaces s ON s.tenant_id = $1 AND s.id = r.space_id
    WHERE r.tenant_id = $1 AND s.name = $2 AND r.id = $3`,
  textsOfRecords: `SELECT t.digest FROM texts t
    JOIN spaces s ON s.tenant_id = $1 AND s.id = t.space_id AND s.name = ANY($2::text[])
    JOIN records r ON r.tenant_id = $1 AND r.space_id = t.space_id AND r.id = t.record_id
    WHERE t.tenant_id = $1 AND r.digest = ANY($3::text[])`,
  listSources: `SELECT c.id, s.name AS space, c.session, c.client, c.first_seen, c.last_seen,
      c.records, c.bytes
    FROM sources c JOIN spaces s ON s.tenant_id = $1 AND s.id = c.space_id
    WHERE c.tenant_id = $1 AND c.space_id = ANY($2::integer[])
    ORDER BY c.last_seen DESC, c.id DESC LIMIT $3 OFFSET $4`,

  purgeSizes: `SELECT count(*) AS records, coalesce(sum(r.size), 0)::bigint AS bytes,
      coalesce(max(r.id), 0) AS last,
      coalesce(sum((SELECT count(*) FROM texts t WHERE t.tenant_id = $1 AND t.space_id = $2
        AND t.record_id = r.id)), 0)::bigint AS items
    FROM records r WHERE r.tenant_id = $1 AND r.space_id = $2 AND ${SCOPE}`,
  addPurge: `INSERT INTO purges (tenant_id, id, space_id, scope, state, records, items, bytes,
      generation_before, generation_after, requested_by, requested_at, upto)
    VALUES ($1, $2, $3, $4, 'tombstoned', $5, $6, $7, $8, $9, $10, $11, $12)`,
  findPurge: `SELECT p.*, s.name AS space FROM purges p
    JOIN spaces s ON s.tenant_id = $1 AND s.id = p.space_id
    WHERE p.tenant_id = $1 AND p.id = $2`,
  listPurges: `SELECT p.*, s.name AS space FROM purges p
    JOIN spaces s ON s.tenant_id = $1 AND s.id = p.space_id
    WHERE p.tenant_id = $1 AND p.space_id = ANY($2::integer[])
    ORDER BY p.number DESC LIMIT $3 OFFSET $4`,
  bury: `INSERT INTO purged (tenant_id, space_id, digest, ref, text_ref, at)
    SELECT $1, $2, n.digest, '', NULL, $4 FROM unnest($3::text[]) AS n(digest)
    ON CONFLICT DO NOTHING`,
  doomed: `SELECT r.id, r.digest, r.ref, r.text_ref, r.source_id, r.size FROM records r
    WHERE r.tenant_id = $1 AND r.space_id = $2 AND ${SCOPE} AND r.id <= $7
    ORDER BY r.id LIMIT $8`,
  erasePassages: `WITH gone AS (
      DELETE FROM passages WHERE tenant_id = $1 AND space_id = $2 AND text_n IN (
        SELECT t.n FROM texts t WHERE t.tenant_id = $1 AND t.space_id = $2
          AND t.record_id = ANY($3::bigint[]))
      RETURNING cardinality(keys) AS terms)
    SELECT count(*) AS passages, coalesce(sum(terms), 0)::bigint AS terms FROM gone`,
  eraseTexts: `DELETE FROM texts
    WHERE tenant_id = $1 AND space_id = $2 AND record_id = ANY($3::bigint[])`,
  eraseRecords: `DELETE FROM records
    WHERE tenant_id = $1 AND space_id = $2 AND id = ANY($3::bigint[])`,
  addPurged: `INSERT INTO purged (tenant_id, space_id, digest, ref, text_ref, at)
    SELECT $1, $2, n.digest, n.ref, n.text_ref, $3
    FROM unnest($4::text[], $5::text[], $6::text[]) AS n(digest, ref, text_ref)
    ON CONFLICT (tenant_id, space_id, digest) DO UPDATE SET ref = excluded.ref,
      text_ref = excluded.text_ref`,
  shrinkSources: `UPDATE sources SET records = sources.records - n.records,
      bytes = sources.bytes - n.bytes
    FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) AS n(id, records, bytes)
    WHERE sources.tenant_id = $1 AND sources.space_id = $2 AND sources.id = n.id`,
  dropSources: `DELETE FROM sources WHERE tenant_id = $1 AND space_id = $2
    AND id = ANY($3::bigint[]) AND records = 0`,
  movePurge: `UPDATE purges SET generation_after = $3 WHERE tenant_id = $1 AND id = $2`,
  finishPurge: `UPDATE purges SET state = 'erased', erased_at = $3
    WHERE tenant_id = $1 AND id = $2 AND state = 'tombstoned'`,
  /** Purges of all tenants that a crash left half done. */
  unfinishedPurges: `SELECT tenant_id, id FROM purges WHERE state = 'tombstoned' ORDER BY number`,

  findLedger: `SELECT key, block, form, at FROM tenant_ledger
    WHERE tenant_id = $1 AND key = ANY($2::text[]) ORDER BY key`,
  makeForgotten: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at)
    VALUES ($1, $2, '', 'text', -1) ON CONFLICT DO NOTHING`,
  holdForgotten: `SELECT at FROM tenant_ledger WHERE tenant_id = $1 AND key = $2 FOR SHARE`,
  markForgotten: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at)
    VALUES ($1, $2, '', 'text', $3) ON CONFLICT (tenant_id, key) DO UPDATE SET
      at = greatest(tenant_ledger.at, excluded.at)`,
  ledgerBlocks: `SELECT key, block FROM tenant_ledger WHERE tenant_id = $1 AND block <> ''`,
  emptyLedger: `UPDATE tenant_ledger SET block = '', at = $3
    WHERE tenant_id = $1 AND key = ANY($2::text[])`,
  addLedgerOnce: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at)
    SELECT $1, n.* FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) AS n
    ON CONFLICT DO NOTHING`,
  addLedger: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at)
    SELECT $1, n.* FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[]) AS n
    ON CONFLICT (tenant_id, key) DO UPDATE SET block = excluded.block, form = excluded.form,
      at = excluded.at
    WHERE excluded.at >= tenant_ledger.at`,
  dropLedger: `DELETE FROM tenant_ledger
    WHERE tenant_id = $1 AND at < $2 AND key LIKE '%:%'`,

  signals: `SELECT signal FROM signals WHERE tenant_id = $1 AND space_id = $2 ORDER BY number`,
  addSignal: `INSERT INTO signals (tenant_id, space_id, number, signal)
    SELECT $1, $2, coalesce(max(number), 0) + 1, $3 FROM signals
    WHERE tenant_id = $1 AND space_id = $2 ON CONFLICT DO NOTHING`,
  dropSignals: `DELETE FROM signals WHERE tenant_id = $1 AND space_id = $2 AND number <=
    (SELECT max(number) FROM signals WHERE tenant_id = $1 AND space_id = $2) - $3::bigint`,

  /** Counts of all tenants, for the operator. */
  health: `SELECT current_setting('server_version') AS version, count(*) AS spaces,
      coalesce(sum(s.records), 0)::bigint AS records,
      (SELECT count(*) FROM service_keys WHERE revoked_at IS NULL) AS keys,
      (SELECT count(*) FROM tenants WHERE status <> 'deleted') AS tenants,
      (SELECT count(*) FROM providers) AS providers,
      greatest(coalesce((SELECT max(created_at) FROM service_keys), 0),
        coalesce((SELECT created_at FROM records ORDER BY id DESC LIMIT 1), 0)) AS newest_at,
      pg_database_size(current_database()) AS bytes
    FROM spaces s`,
} as const;
