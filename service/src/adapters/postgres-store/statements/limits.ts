/** The statements on counts of limits. The clock is the database's own, but in a test. */

const NOW = `coalesce($4::double precision, extract(epoch FROM clock_timestamp()) * 1000)`;

export const LIMITS = {
  /** In their order, so that two calls never wait for each other. */
  makeLimits: `INSERT INTO limits (tenant_id, kind, bucket)
    SELECT $1, n.kind, n.bucket FROM unnest($2::text[], $3::text[]) AS n(kind, bucket)
    ORDER BY n.kind COLLATE "C", n.bucket COLLATE "C" ON CONFLICT DO NOTHING`,
  lockLimits: `SELECT l.kind, l.bucket, l.value, ${NOW}::double precision AS now
    FROM limits l JOIN unnest($2::text[], $3::text[]) AS n(kind, bucket)
      ON n.kind = l.kind AND n.bucket = l.bucket
    WHERE l.tenant_id = $1 ORDER BY l.kind, l.bucket FOR UPDATE OF l`,
  setLimits: `UPDATE limits SET value = n.value
    FROM unnest($2::text[], $3::text[], $4::double precision[]) AS n(kind, bucket, value)
    WHERE limits.tenant_id = $1 AND limits.kind = n.kind AND limits.bucket = n.bucket`,
  dropBudgets: `DELETE FROM limits WHERE tenant_id = $1 AND kind = 'budget'
    AND bucket >= $2 AND bucket < $3`,
  endLeases: `DELETE FROM limit_leases
    WHERE tenant_id = $1 AND bucket = ANY($2::text[]) AND ends <= $3::double precision`,
  countLeases: `SELECT bucket, count(*) AS standing FROM limit_leases
    WHERE tenant_id = $1 AND bucket = ANY($2::text[]) GROUP BY bucket`,
  addLeases: `INSERT INTO limit_leases (tenant_id, bucket, lease_id, ends)
    SELECT $1, n.* FROM unnest($2::text[], $3::text[], $4::double precision[])
      AS n(bucket, lease_id, ends)
    ON CONFLICT (tenant_id, bucket, lease_id) DO UPDATE SET ends = excluded.ends`,
  renewLeases: `UPDATE limit_leases SET ends = ${NOW} + n.ttl
    FROM unnest($2::text[], $3::text[], $5::double precision[]) AS n(bucket, lease_id, ttl)
    WHERE limit_leases.tenant_id = $1 AND limit_leases.bucket = n.bucket
      AND limit_leases.lease_id = n.lease_id AND limit_leases.ends > ${NOW}`,
  releaseLeases: `DELETE FROM limit_leases
    USING unnest($2::text[], $3::text[]) AS n(bucket, lease_id)
    WHERE limit_leases.tenant_id = $1 AND limit_leases.bucket = n.bucket
      AND limit_leases.lease_id = n.lease_id`,
} as const;
