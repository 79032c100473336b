/** The statements on the tables of days: one a day of receipts, and one a day of audit events. */

export type DayTable = 'receipts' | 'audit';

/** Names that dayOf makes, and bounds that are ids of receipts or milliseconds. */
const DAY = /^\d{8}$/;
const BOUND = /^(?:rcpt_[0-9a-z]{26}|\d{1,15})$/;

/** `day` as 20261120; the bounds: the first value of that day and of the next one. */
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
  dropAuditRows: `DELETE FROM audit_rest WHERE at < $1`,
} as const;
