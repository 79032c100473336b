/** The statements on leases. The clock is the database's own. */

const NOW = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`;

export const LEASES = {
  dropLeases: `DELETE FROM leases WHERE tenant_id = $1 AND ends <= ${NOW}`,
  takeLease: `INSERT INTO leases (tenant_id, name, holder, note, ends)
    VALUES ($1, $2, $3, $4, ${NOW} + $5::bigint)
    ON CONFLICT (tenant_id, name) DO UPDATE SET holder = excluded.holder, note = excluded.note,
      ends = excluded.ends
    WHERE leases.ends <= ${NOW} OR leases.holder = excluded.holder`,
  findLease: `SELECT name, holder, note FROM leases WHERE tenant_id = $1 AND name = $2`,
  renewLease: `UPDATE leases SET ends = ${NOW} + $4::bigint
    WHERE tenant_id = $1 AND name = $2 AND holder = $3 AND ends > ${NOW}`,
  endLease: `DELETE FROM leases WHERE tenant_id = $1 AND name = $2 AND holder = $3`,
  endAnswer: `DELETE FROM leases WHERE tenant_id = $1 AND name = $2`,
  listLeases: `SELECT name, holder, note FROM leases
    WHERE tenant_id = $1 AND starts_with(name, $2) AND ends > ${NOW} ORDER BY name`,
} as const;
