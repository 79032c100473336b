import { POSITIONS_PER_EXCHANGE } from '../../store/schema.ts';

/**
 * The statements of a recall. Places of a term come from the index of keyed hashes; every statement names
 * tenant and space besides, because two of 10^9 keys may be equal.
 */

/** Passages of each part of an exchange that are read, as from a file. */
const PASSAGES_PER_RECORD = 64;
/** The newest passages with a word, of which those that a person said are taken, as from a file. */
const SAID_WITH_LOOKED_MAX = 512;

/**
 * The passages of space $2 with the word e.key. By a sum no index finds the space: the plan would read
 * all places of the space out of another index, again for each word.
 */
const WITH_WORD = `p.space_id + 0 = $2 AND p.keys @> ARRAY[e.key]`;
/** Their numbers, as "3,17,256". */
const LIST = `coalesce(array_to_string(array_agg(p.n), ','), '')`;

const QUARTER = POSITIONS_PER_EXCHANGE / 4;

function partOf(place: number, from: number, to: number): string {
  return `(SELECT ${place} AS part, p.text_n, p.n, p.position, p.end_at - p.start_at AS chars,
      array_send(p.keys) AS keys
    FROM passages p WHERE p.tenant_id = $1 AND p.space_id = e.space_id
      AND p.conversation_id = e.conversation_id
      AND p.position >= e.exchange * ${POSITIONS_PER_EXCHANGE} + ${from * QUARTER}
      AND p.position < e.exchange * ${POSITIONS_PER_EXCHANGE} + ${to * QUARTER}
    ORDER BY p.position, p.n LIMIT ${PASSAGES_PER_RECORD})`;
}

export const RECALL = {
  spaces: `SELECT id, name, passages, terms, next_passage AS next FROM spaces
    WHERE tenant_id = $1 AND name = ANY($2::text[])`,
  /**
   * In how many passages each word is, and in which where there are less than $4. A count is good until
   * the space has grown by a tenth ($5: its passages now).
   */
  countTerms: `SELECT e.place, w.found AS known, f.found, f.places
    FROM unnest($3::bigint[]) WITH ORDINALITY AS e(key, place)
    LEFT JOIN word_counts w ON w.tenant_id = $1 AND w.space_id = $2 AND w.key = e.key
      AND abs($5::bigint - w.passages) * 10 <= w.passages
    CROSS JOIN LATERAL (SELECT count(*) AS found,
        CASE WHEN count(*) < $4 THEN ${LIST} ELSE '' END AS places
      FROM (SELECT p.n FROM passages p WHERE p.tenant_id = $1 AND ${WITH_WORD}
        AND w.found IS NULL LIMIT $4) p) f`,
  keepCounts: `INSERT INTO word_counts (tenant_id, space_id, key, found, passages)
    SELECT $1, n.* FROM unnest($2::integer[], $3::bigint[], $4::bigint[], $5::bigint[])
      AS n(space_id, key, found, passages)
    ON CONFLICT (tenant_id, space_id, key) DO UPDATE SET found = excluded.found,
      passages = excluded.passages`,
  placesOf: `SELECT e.place, f.places FROM unnest($3::bigint[]) WITH ORDINALITY AS e(key, place)
    CROSS JOIN LATERAL (SELECT ${LIST} AS places FROM passages p
      WHERE p.tenant_id = $1 AND ${WITH_WORD} AND p.n >= $4) f`,
  saidIn: `SELECT p.n FROM (SELECT t.n, t.at FROM texts t WHERE t.tenant_id = $1 AND t.space_id = $2
      AND t.at >= $3 AND t.at < $4 AND t.role = 'user' ORDER BY t.at DESC, t.n DESC LIMIT $5) said
    JOIN passages p ON p.tenant_id = $1 AND p.space_id = $2 AND p.text_n = said.n
    ORDER BY said.at DESC, said.n DESC, p.n LIMIT $5`,
  passagesOf: `SELECT t.n AS text_n, p.n FROM texts t
    JOIN passages p ON p.tenant_id = $1 AND p.space_id = $2 AND p.text_n = t.n
    WHERE t.tenant_id = $1 AND t.space_id = $2 AND t.digest = ANY($3::text[])`,
  windows: `SELECT c.space_id, c.n, w.around
    FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS e(space_id, n, place)
    JOIN passages c ON c.tenant_id = $1 AND c.space_id = e.space_id AND c.n = e.n
    CROSS JOIN LATERAL (
      SELECT string_agg(near.n::text, ',' ORDER BY near.position, near.n) AS around FROM (
        (SELECT p.n, p.position FROM passages p WHERE p.tenant_id = $1 AND p.space_id = c.space_id
          AND p.conversation_id = c.conversation_id AND (p.position, p.n) < (c.position, c.n)
          ORDER BY p.position DESC, p.n DESC LIMIT $4)
        UNION ALL SELECT c.n, c.position
        UNION ALL (SELECT p.n, p.position FROM passages p
          WHERE p.tenant_id = $1 AND p.space_id = c.space_id
          AND p.conversation_id = c.conversation_id AND (p.position, p.n) > (c.position, c.n)
          ORDER BY p.position, p.n LIMIT $4)) near) w
    ORDER BY e.place`,
  passages: `SELECT p.space_id, p.n, p.text_n, p.position, p.end_at - p.start_at AS chars,
      array_send(p.keys) AS keys
    FROM unnest($2::integer[], $3::bigint[]) AS e(space_id, n)
    JOIN passages p ON p.tenant_id = $1 AND p.space_id = e.space_id AND p.n = e.n`,
  timesOf: `SELECT coalesce(t.at, 0) AS at
    FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS e(space_id, n, place)
    LEFT JOIN texts t ON t.tenant_id = $1 AND t.space_id = e.space_id AND t.n = e.n
    ORDER BY e.place`,
  texts: `SELECT p.space_id, p.n, p.start_at, p.end_at, t.ref, t.digest, s.name AS space, t.role, t.at,
      t.source, t.message, t.record_id
    FROM unnest($2::integer[], $3::bigint[]) AS e(space_id, n)
    JOIN passages p ON p.tenant_id = $1 AND p.space_id = e.space_id AND p.n = e.n
    JOIN texts t ON t.tenant_id = $1 AND t.space_id = p.space_id AND t.n = p.text_n
    JOIN spaces s ON s.tenant_id = $1 AND s.id = p.space_id`,
  recordBytes: `SELECT r.space_id, r.id, c.client, r.bytes
    FROM unnest($2::integer[], $3::bigint[]) AS e(space_id, id)
    JOIN records r ON r.tenant_id = $1 AND r.space_id = e.space_id AND r.id = e.id
    JOIN sources c ON c.tenant_id = $1 AND c.space_id = r.space_id AND c.id = r.source_id`,
  exchangesOf: `SELECT p.space_id, p.conversation_id, p.position / ${POSITIONS_PER_EXCHANGE} AS exchange,
      max(p.text_n) AS text_n, min(e.place) AS place
    FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS e(space_id, n, place)
    JOIN passages p ON p.tenant_id = $1 AND p.space_id = e.space_id AND p.n = e.n
    GROUP BY p.space_id, p.conversation_id, p.position / ${POSITIONS_PER_EXCHANGE}
    ORDER BY place LIMIT $4`,
  exchangeFacts: `SELECT t.at, t.branch
    FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS e(space_id, n, place)
    LEFT JOIN texts t ON t.tenant_id = $1 AND t.space_id = e.space_id AND t.n = e.n
    ORDER BY e.place`,
  exchangeParts: `SELECT e.place, l.part, l.text_n, l.chars, l.keys
    FROM unnest($2::integer[], $3::bigint[], $4::bigint[]) WITH ORDINALITY
      AS e(space_id, conversation_id, exchange, place)
    CROSS JOIN LATERAL (${partOf(0, 0, 2)} UNION ALL ${partOf(2, 2, 3)}
      UNION ALL ${partOf(3, 3, 4)}) l
    ORDER BY e.place, l.part, l.position, l.n`,
  records: `SELECT t.space_id, t.n, t.role, t.ref, s.name AS space, t.at, t.source, t.message,
      t.record_id
    FROM unnest($2::integer[], $3::bigint[]) AS e(space_id, n)
    JOIN texts t ON t.tenant_id = $1 AND t.space_id = e.space_id AND t.n = e.n
    JOIN spaces s ON s.tenant_id = $1 AND s.id = t.space_id`,
  sessions: `SELECT v.id AS conversation_id, v.key, max(said.at) AS at,
      coalesce(string_agg(DISTINCT said.branch, ','), '') AS branches
    FROM (SELECT t.session, t.conversation_id, t.at, t.branch, t.source FROM texts t
      WHERE t.tenant_id = $1 AND t.space_id = $2 ORDER BY t.at DESC, t.n DESC LIMIT $3) said
    JOIN conversations v ON v.tenant_id = $1 AND v.space_id = $2 AND v.id = said.conversation_id
    WHERE said.session = v.key
    GROUP BY v.id, v.key HAVING bool_or(said.source IS NULL)
    ORDER BY at DESC, v.id DESC LIMIT $4`,
  holders: `SELECT e.place, (SELECT string_agg(DISTINCT held.conversation_id::text, ',')
      FROM (SELECT p.n, p.text_n, p.conversation_id FROM passages p
        WHERE p.tenant_id = $1 AND ${WITH_WORD}
        ORDER BY p.n DESC LIMIT $4) held
      JOIN texts t ON t.tenant_id = $1 AND t.space_id = $2 AND t.n = held.text_n
        AND t.source IS NULL) AS held
    FROM unnest($3::bigint[]) WITH ORDINALITY AS e(key, place)`,
  opening: `SELECT p.n FROM passages p
    WHERE p.tenant_id = $1 AND p.space_id = $2 AND p.conversation_id = $3
    ORDER BY p.position, p.n LIMIT $4`,
  saidWith: `SELECT t.space_id, t.ref, t.digest, s.name AS space, t.role, t.at, t.message, t.record_id,
      held.start_at, held.end_at
    FROM (SELECT p.n, p.text_n, p.start_at, p.end_at FROM passages p
      WHERE p.tenant_id = $1 AND p.space_id + 0 = $2 AND p.keys && $3::bigint[]
      ORDER BY p.n DESC LIMIT ${SAID_WITH_LOOKED_MAX}) held
    JOIN texts t ON t.tenant_id = $1 AND t.space_id = $2 AND t.n = held.text_n
      AND t.role = 'user' AND t.source IS NULL
    JOIN spaces s ON s.tenant_id = $1 AND s.id = t.space_id
    ORDER BY held.n DESC LIMIT $4`,
} as const;
