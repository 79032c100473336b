import { shapeOf } from '../../control/tables.ts';
import type { MovedTable } from '../../service-store/move-source.ts';

/**
 * The statements of a move from a file. Most cover all tenants, because the whole service moves. Each may run again
 * after a kill.
 */

/**
 * Columns of a space that are not copied. Captures of the records count them again, except `counter`: it starts at 0,
 * because the database has its own epoch.
 */
const COUNTED = new Set(['counter', 'seq', 'records', 'bytes']);

/**
 * Writes a statement that adds rows of a file to a table. It replaces existing rows with the same key, such as those of
 * an earlier attempt.
 */
export function adding(table: MovedTable): string {
  const { key, columns: all } = shapeOf(table);
  const columns = table === 'tenant_spaces' ? all.filter((name) => !COUNTED.has(name)) : all;
  const list = columns.join(', ');
  const news = columns.map((name) => `${name} = excluded.${name}`).join(', ');
  return `INSERT INTO ${table} (${list})
    SELECT ${list} FROM json_populate_recordset(NULL::${table}, $1::json)
    ON CONFLICT (${key}) DO UPDATE SET ${news}`;
}

export const counting = (table: MovedTable): string => `SELECT count(*) AS count FROM ${table}`;

export const MOVE = {
  /** Returns true if a service has used the database. */
  isUsed: `SELECT EXISTS (SELECT FROM service_keys) OR EXISTS (SELECT FROM tenant_spaces)
    OR EXISTS (SELECT FROM admins) OR EXISTS (SELECT FROM receipts) AS used`,
  records: `SELECT r.digest, r.bytes FROM objects r
    JOIN tenant_spaces s ON s.tenant_id = $1 AND s.name = $2 AND s.id = r.space_id
    WHERE r.tenant_id = $1 AND r.digest = ANY($3::text[])`,
  receipts: `SELECT r.tenant_id, r.id, r.body
    FROM unnest($1::text[], $2::text[]) AS e(tenant_id, id)
    JOIN receipts r ON r.tenant_id = e.tenant_id AND r.id = e.id`,
} as const;
