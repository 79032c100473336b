import { MEMORY, SPACE_NAMED } from '../../memory/statements.ts';

/** PostgreSQL's own statements of captures, of the index, and of the signals of prompts. */
export const INDEX = {
  lockSpace: `SELECT (SELECT e.value FROM service_meta e WHERE e.name = 'epoch') AS epoch, id, counter, seq,
      records, bytes, next_passage, next_text, next_conversation
    FROM tenant_spaces WHERE tenant_id = $1 AND name = $2 FOR UPDATE`,
  makeSpace: `INSERT INTO tenant_spaces (tenant_id, id, name)
    SELECT $1, coalesce(max(id), 0) + 1, $2 FROM tenant_spaces WHERE tenant_id = $1
    HAVING count(*) < $3::bigint ON CONFLICT DO NOTHING`,
  growSpace: `UPDATE tenant_spaces SET seq = seq + $3, records = records + $3, bytes = bytes + $4,
      passages = passages + $5, terms = terms + $6, next_passage = next_passage + $5,
      next_text = next_text + $7, next_conversation = next_conversation + $8
    WHERE tenant_id = $1 AND id = $2`,
  /** A purge drops the counts of words, because they would still reveal purged words. */
  dropCounts: `DELETE FROM word_counts WHERE tenant_id = $1 AND space_id = $2`,
  known: `${MEMORY.known}
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
  /** Needs the sources, which addSources has added or found. */
  addRecords: `INSERT INTO objects (tenant_id, space_id, digest, ref, kind, text_digest, text_ref,
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
  /** Needs the records, which addRecords has added: the database has given them their ids. */
  addTexts: `INSERT INTO texts (tenant_id, space_id, n, record_id, message, digest, ref, role,
      session, conversation_id, at, branch, source, last_from)
    SELECT $1, $2, n.n,
      (SELECT r.id FROM objects r WHERE r.tenant_id = $1 AND r.space_id = $2 AND r.digest = n.record),
      n.message, n.digest, n.ref, n.role, n.session, n.conversation_id, n.at, n.branch, n.source,
      n.last_from
    FROM unnest($3::bigint[], $4::text[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::text[],
      $10::bigint[], $11::bigint[], $12::text[], $13::text[], $14::integer[]) AS n(n, record, message, digest, ref,
      role, session, conversation_id, at, branch, source, last_from)`,
  /** $10 has the keys of all passages, one passage after the other; `words` is the number of keys of each. */
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
  renewRecords: `UPDATE objects SET observed_at = n.at
    FROM unnest($3::text[], $4::bigint[]) AS n(digest, at)
    WHERE objects.tenant_id = $1 AND objects.space_id = $2 AND objects.digest = n.digest
      AND objects.observed_at < n.at`,
  verifyTexts: `UPDATE texts SET source = NULL
    WHERE tenant_id = $1 AND space_id = $2 AND digest = ANY($3::text[]) AND source IS NOT NULL`,

  /** Passages with each word: see `searchItems`. */
  held: `
      SELECT p.space_id, p.text_n, p.n, w.place
      FROM unnest($13::integer[], $14::bigint[], $15::integer[]) AS w(space_id, key, place)
      JOIN passages p ON p.tenant_id = $1 AND p.space_id + 0 = w.space_id AND p.keys @> ARRAY[w.key]`,
  erasePassages: `WITH gone AS (
      DELETE FROM passages WHERE tenant_id = $1 AND space_id = $2 AND text_n IN (
        SELECT t.n FROM texts t WHERE t.tenant_id = $1 AND t.space_id = $2
          AND t.record_id = ANY($3::bigint[]))
      RETURNING cardinality(keys) AS terms)
    SELECT count(*) AS passages, coalesce(sum(terms), 0)::bigint AS terms FROM gone`,
  eraseTexts: `DELETE FROM texts
    WHERE tenant_id = $1 AND space_id = $2 AND record_id = ANY($3::bigint[])`,
  shrinkIndex: `UPDATE tenant_spaces SET passages = passages - $3, terms = terms - $4
    WHERE tenant_id = $1 AND id = $2`,

  signals: `SELECT signal FROM signals WHERE tenant_id = $1 AND space_id = $2 ORDER BY number`,
  addSignal: `INSERT INTO signals (tenant_id, space_id, number, signal)
    SELECT $1, $2, coalesce(max(number), 0) + 1, $3 FROM signals
    WHERE tenant_id = $1 AND space_id = $2 ON CONFLICT DO NOTHING`,
  dropSignals: `DELETE FROM signals WHERE tenant_id = $1 AND space_id = $2 AND number <=
    (SELECT max(number) FROM signals WHERE tenant_id = $1 AND space_id = $2) - $3::bigint`,
} as const;
