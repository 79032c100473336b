import {
  PASSAGES_PER_RECORD,
  POSITIONS_PER_EXCHANGE,
  SAID_WITH_LOOKED_MAX,
} from '../../../../../src/adapters/store/schema.ts';

/**
 * The SQL statements of a recall. They find passages with a word by the word's key: a 64-bit hash that differs by
 * tenant and space. They name tenant and space all the same, because two keys may be equal by chance.
 */

/**
 * Selects passages of space $2 with the word e.key. `+ 0` keeps the planner from an index on the space, with which it
 * would read all passages of the space for each word.
 */
const WITH_WORD = `p.space_id + 0 = $2 AND p.keys @> ARRAY[e.key]`;
/** Joins the numbers of passages to a text such as "3,17,256". */
const LIST = `coalesce(array_to_string(array_agg(p.n), ','), '')`;

/**
 * Writes a look-up of one row as a subquery. The planner runs subqueries in the written order. For a join it considers
 * every order of the tables: with six tables that took 4 ms instead of 0.5 ms.
 */
function lookUp(columns: string, table: string, where: string): string {
  return `(SELECT ${columns} FROM ${table} WHERE ${where} LIMIT 1)`;
}

/** Writes a look-up of passage e.n of space e.space_id. */
function passage(columns: string): string {
  return lookUp(
    columns,
    'passages p',
    'p.tenant_id = $1 AND p.space_id = e.space_id AND p.n = e.n',
  );
}

const TEXT = `t.ref AS said_ref, t.digest AS said_digest, t.role, t.at, t.source AS said_source,
  t.last_from, t.message, t.record_id`;
const RECORD = `r.kind, r.created_at, r.digest, r.ref, r.text_digest, r.source_id AS source, r.observed_at,
  r.position, r.fingerprint, r.branch, r.bytes,
  (SELECT m.source FROM texts m WHERE m.tenant_id = $1 AND m.space_id = r.space_id
    AND m.record_id = r.id ORDER BY m.n LIMIT 1) AS mark`;

/** Writes columns and tables for the text with this number, its record and origin. One row per record has the bytes. */
function said(number: string): { readonly columns: string; readonly from: string } {
  const columns = `e.space_id, t.said_ref, t.said_digest, t.role, t.at, t.said_source, t.last_from, t.message,
    t.record_id, r.kind, r.created_at, r.digest, r.ref, r.text_digest, r.source, r.observed_at,
    r.position, r.fingerprint, r.branch, r.mark, s.space, c.session, c.client,
    CASE WHEN row_number() OVER (PARTITION BY e.space_id, t.record_id) = 1 THEN r.bytes END AS bytes`;
  const text = `t.tenant_id = $1 AND t.space_id = e.space_id AND t.n = ${number}`;
  const record = 'r.tenant_id = $1 AND r.space_id = e.space_id AND r.id = t.record_id';
  const source = 'c.tenant_id = $1 AND c.space_id = e.space_id AND c.id = r.source';
  const from = `CROSS JOIN LATERAL ${lookUp(TEXT, 'texts t', text)} t
    CROSS JOIN LATERAL ${lookUp(RECORD, 'objects r', record)} r
    CROSS JOIN LATERAL ${lookUp('c.session, c.client', 'sources c', source)} c
    CROSS JOIN LATERAL ${lookUp('s.name AS space', 'tenant_spaces s', 's.tenant_id = $1 AND s.id = e.space_id')} s`;
  return { columns, from };
}

const OF_PASSAGE = said('p.text_n');
const OF_TEXT = said('e.n');
const OF_FOUND = said('e.text_n');

const NEIGHBOUR = 'p.n, p.text_n, p.position, p.end_at - p.start_at AS chars, p.keys';
const AROUND = `p.tenant_id = $1 AND p.space_id = e.space_id AND p.conversation_id = c.conversation_id`;
/** True in one of the rows of a passage. A passage may be near several others, but its words are sent only once. */
const IS_FIRST = `row_number() OVER (PARTITION BY e.space_id, near.n) = 1`;

const QUARTER = POSITIONS_PER_EXCHANGE / 4;

/**
 * Selects the first passages in some quarters of exchange x: from quarter `from` up to, but without, quarter `to`. The
 * column `part` is `place` in each row.
 */
function partOf(place: number, from: number, to: number): string {
  return `(SELECT ${place} AS part, p.text_n, p.n, p.position, p.end_at - p.start_at AS chars,
      array_send(p.keys) AS keys
    FROM passages p WHERE p.tenant_id = $1 AND p.space_id = x.space_id
      AND p.conversation_id = x.conversation_id
      AND p.position >= x.exchange * ${POSITIONS_PER_EXCHANGE} + ${from * QUARTER}
      AND p.position < x.exchange * ${POSITIONS_PER_EXCHANGE} + ${to * QUARTER}
    ORDER BY p.position, p.n LIMIT ${PASSAGES_PER_RECORD})`;
}

export const RECALL = {
  spaces: `SELECT id, name, passages, terms, next_passage AS next
    FROM tenant_spaces
    WHERE tenant_id = $1 AND name = ANY($2::text[])`,
  /**
   * Returns the stored count of each word. Without one it counts the passages with the word, up to $4, and returns the
   * passages if they are fewer. A stored count is valid until the number of the space's passages ($5) has changed by
   * more than a tenth.
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
  passagesOf: `SELECT t.digest, t.n AS text_n, p.n FROM texts t
    JOIN passages p ON p.tenant_id = $1 AND p.space_id = $2 AND p.text_n = t.n
    WHERE t.tenant_id = $1 AND t.space_id = $2 AND t.digest = ANY($3::text[])`,
  /** Returns passages and their neighbours in the conversation, with their words and times. */
  windows: `SELECT e.place, e.space_id, near.n, near.text_n, near.position, near.chars,
      CASE WHEN ${IS_FIRST} THEN array_send(near.keys) END AS keys,
      CASE WHEN ${IS_FIRST} THEN (SELECT t.at FROM texts t WHERE t.tenant_id = $1
        AND t.space_id = e.space_id AND t.n = near.text_n) END AS at
    FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS e(space_id, n, place)
    CROSS JOIN LATERAL ${passage('p.n, p.conversation_id, p.position')} c
    CROSS JOIN LATERAL ((SELECT ${NEIGHBOUR} FROM passages p
        WHERE ${AROUND} AND (p.position, p.n) < (c.position, c.n)
        ORDER BY p.position DESC, p.n DESC LIMIT $4)
      UNION ALL (SELECT ${NEIGHBOUR} FROM passages p
        WHERE ${AROUND} AND (p.position, p.n) >= (c.position, c.n)
        ORDER BY p.position, p.n LIMIT $4::bigint + 1)) near
    ORDER BY e.place, near.position, near.n`,
  texts: `SELECT e.n, p.start_at, p.end_at, ${OF_PASSAGE.columns}
    FROM unnest($2::integer[], $3::bigint[]) AS e(space_id, n)
    CROSS JOIN LATERAL ${passage('p.text_n, p.start_at, p.end_at')} p ${OF_PASSAGE.from}`,
  exchanges: `SELECT x.place, x.space_id, x.conversation_id, x.exchange, x.text_n AS newest, f.at, f.branch,
      l.part, l.text_n, l.chars, l.keys
    FROM (SELECT e.space_id, p.conversation_id, p.position / ${POSITIONS_PER_EXCHANGE} AS exchange,
        max(p.text_n) AS text_n, min(e.place) AS place
      FROM unnest($2::integer[], $3::bigint[]) WITH ORDINALITY AS e(space_id, n, place)
      CROSS JOIN LATERAL ${passage('p.text_n, p.conversation_id, p.position')} p
      GROUP BY e.space_id, p.conversation_id, p.position / ${POSITIONS_PER_EXCHANGE}
      ORDER BY place LIMIT $4) x
    LEFT JOIN LATERAL ${lookUp(
      't.at, t.branch',
      'texts t',
      't.tenant_id = $1 AND t.space_id = x.space_id AND t.n = x.text_n',
    )} f ON true
    CROSS JOIN LATERAL (${partOf(0, 0, 2)} UNION ALL ${partOf(2, 2, 3)}
      UNION ALL ${partOf(3, 3, 4)}) l
    ORDER BY x.place, l.part, l.position, l.n`,
  records: `SELECT e.n, 0 AS start_at, 0 AS end_at, ${OF_TEXT.columns}
    FROM unnest($2::integer[], $3::bigint[]) AS e(space_id, n) ${OF_TEXT.from}`,
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
        WHERE p.tenant_id = $1 AND ${WITH_WORD} AND p.n + 0 >= $5
        ORDER BY p.n DESC LIMIT $4) held
      JOIN texts t ON t.tenant_id = $1 AND t.space_id = $2 AND t.n = held.text_n
        AND t.source IS NULL) AS held
    FROM unnest($3::bigint[]) WITH ORDINALITY AS e(key, place)`,
  opening: `SELECT p.n FROM passages p
    WHERE p.tenant_id = $1 AND p.space_id = $2 AND p.conversation_id = $3
    ORDER BY p.position, p.n LIMIT $4`,
  closing: `SELECT p.n FROM passages p
    WHERE p.tenant_id = $1 AND p.space_id = $2 AND p.conversation_id = $3
    ORDER BY p.position DESC, p.n DESC LIMIT $4`,
  saidWith: `SELECT e.n, e.start_at, e.end_at, ${OF_FOUND.columns}
    FROM (SELECT $2::integer AS space_id, held.* FROM (SELECT p.n, p.text_n, p.start_at, p.end_at
        FROM passages p WHERE p.tenant_id = $1 AND p.space_id + 0 = $2 AND p.keys && $3::bigint[]
        ORDER BY p.n DESC LIMIT ${SAID_WITH_LOOKED_MAX}) held
      JOIN texts u ON u.tenant_id = $1 AND u.space_id = $2 AND u.n = held.text_n
        AND u.role = 'user' AND u.source IS NULL
      ORDER BY held.n DESC LIMIT $4) e ${OF_FOUND.from}
    ORDER BY e.n DESC`,
} as const;
