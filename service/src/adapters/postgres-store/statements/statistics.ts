/** The statements that keep the planner's statistics of svc's own tables. */

/** The names of svc's tables and of their parts: they need no quotes. */
const TABLE = /^[a-z][a-z0-9_]{0,62}$/;

/** It waits for no lock: who holds one is changing the table, and the next look comes soon. */
export function analyze(table: string): string {
  if (!TABLE.test(table)) throw new TypeError('That is no table of svc.');
  return `ANALYZE (SKIP_LOCKED) ${table}`;
}

export const STATISTICS = {
  /** Tables, and parts of tables, that are more than twice as large as when the planner last learned of them. */
  outgrown: `SELECT l.relname::text AS name
    FROM unnest($1::text[]) AS n(name)
    JOIN pg_class c ON c.oid = to_regclass(n.name)
    LEFT JOIN pg_inherits i ON i.inhparent = c.oid
    JOIN pg_class l ON l.oid = coalesce(i.inhrelid, c.oid) AND l.relkind = 'r'
    WHERE pg_relation_size(l.oid) / current_setting('block_size')::bigint
      > 2 * greatest(l.relpages, 0) + $2::integer
    ORDER BY 1 LIMIT $3`,
} as const;
