/** Statements about day tables (receipts and audit events have one per day) and about the planner's statistics. */

export type DayTable = 'receipts' | 'audit';

/** DAY matches a day in a table's name, BOUND a bound of a day: a receipt id, or milliseconds since 1970. */
const DAY = /^\d{8}$/;
const BOUND = /^(?:rcpt_[0-9a-z]{26}|\d{1,15})$/;

/** Writes the statement for the table of a day such as 20261120, from its first value to that of the next day. */
export function makeDay(
  table: DayTable,
  day: string,
  { first, next }: { readonly first: string; readonly next: string },
): string {
  if (!DAY.test(day) || !BOUND.test(first) || !BOUND.test(next)) {
    throw new TypeError('That is no day.');
  }
  return `CREATE TABLE IF NOT EXISTS ${table}_${day} PARTITION OF ${table}
    FOR VALUES FROM ('${first}') TO ('${next}')`;
}

export function dropDay(table: DayTable, day: string): string {
  if (!DAY.test(day)) throw new TypeError('That is no day.');
  return `DROP TABLE IF EXISTS ${table}_${day}`;
}

export const DAYS = {
  list: `SELECT c.relname::text AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent IN (to_regclass('receipts'), to_regclass('audit'))
      AND c.relname ~ '_[0-9]{8}$' ORDER BY 1`,
} as const;

/** Matches the names of svc's tables and partitions, which need no quotes. */
const TABLE = /^[a-z][a-z0-9_]{0,62}$/;

/**
 * Writes the statement that updates the planner's statistics of a table. It skips a table that another session has
 * locked, and a later check tries again.
 */
export function analyze(table: string): string {
  if (!TABLE.test(table)) throw new TypeError('That is no table of svc.');
  return `ANALYZE (SKIP_LOCKED) ${table}`;
}

export const STATISTICS = {
  /**
   * Returns tables and partitions whose number of pages exceeds twice the number in their last statistics by more than
   * $2.
   */
  outgrown: `SELECT l.relname::text AS name
    FROM unnest($1::text[]) AS n(name)
    JOIN pg_class c ON c.oid = to_regclass(n.name)
    LEFT JOIN pg_inherits i ON i.inhparent = c.oid
    JOIN pg_class l ON l.oid = coalesce(i.inhrelid, c.oid) AND l.relkind = 'r'
    WHERE pg_relation_size(l.oid) / current_setting('block_size')::bigint
      > 2 * greatest(l.relpages, 0) + $2::integer
    ORDER BY 1 LIMIT $3`,
} as const;
