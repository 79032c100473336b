import { COUNT_ADDITIONS, COUNT_COLUMNS, countSums } from '../../service-store/usage-counts.ts';

/** The statements on receipts, their heads and the sums of their days. */

const SUMS = countSums((name) => `sum(u.${name})::bigint`);

const PAGE = `SELECT id, body FROM receipts WHERE tenant_id = $1
  AND ($2::text IS NULL OR id > $2) AND ($3::text IS NULL OR id < $3)
  AND ($4::text IS NULL OR id >= $4) AND ($5::text IS NULL OR id < $5)
  AND ($6::text IS NULL OR status = $6) AND ($7::text IS NULL OR model = $7)
  AND ($8::text IS NULL OR key_id = $8) AND ($9::text IS NULL OR provider_id = $9)`;

export const RECEIPTS = {
  addReceipts: `INSERT INTO receipts (tenant_id, id, key_id, provider_id, model, status, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
      $7::text[]) ON CONFLICT DO NOTHING RETURNING tenant_id, id`,
  /** In their order, so that two nodes never wait for each other. */
  raiseHeads: `INSERT INTO receipt_heads (tenant_id, node, last_seq)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) AS n(tenant_id, node, last_seq)
    ORDER BY n.tenant_id COLLATE "C", n.node COLLATE "C"
    ON CONFLICT (tenant_id, node) DO UPDATE SET
      last_seq = greatest(receipt_heads.last_seq, excluded.last_seq)
    WHERE receipt_heads.body IS NULL`,
  addUsage: `INSERT INTO usage_days (tenant_id, day, key_id, provider_id, model, ${COUNT_COLUMNS})
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[],
      $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[],
      $13::bigint[], $14::bigint[], $15::bigint[]) AS n(tenant_id, day, key_id, provider_id, model)
    ORDER BY n.tenant_id COLLATE "C", n.day COLLATE "C", n.key_id COLLATE "C",
      n.provider_id COLLATE "C", n.model COLLATE "C"
    ON CONFLICT (tenant_id, day, key_id, provider_id, model) DO UPDATE SET ${COUNT_ADDITIONS}`,
  findReceipt: `SELECT id, body FROM receipts WHERE tenant_id = $1 AND id = $2`,
  listUp: `${PAGE} ORDER BY id LIMIT $10`,
  listDown: `${PAGE} ORDER BY id DESC LIMIT $10`,
  dropReceipts: `DELETE FROM receipts WHERE tenant_id = $1 AND id IN (SELECT r.id FROM receipts r
    WHERE r.tenant_id = $1 AND r.id < $2 ORDER BY r.id LIMIT $3)`,
  listHeads: `SELECT tenant_id, node, last_seq, body FROM receipt_heads
    WHERE tenant_id = $1 AND node > $2 ORDER BY node LIMIT $3`,
  openHeads: `SELECT tenant_id, node, last_seq, body FROM receipt_heads
    WHERE node = $1 AND body IS NULL ORDER BY tenant_id LIMIT $2`,
  closeHeads: `INSERT INTO receipt_heads (tenant_id, node, last_seq, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
      AS n(tenant_id, node, last_seq, body)
    ORDER BY n.tenant_id COLLATE "C", n.node COLLATE "C"
    ON CONFLICT (tenant_id, node) DO UPDATE SET last_seq = excluded.last_seq, body = excluded.body
    WHERE receipt_heads.body IS NULL`,
  listUsage: `SELECT v.names, ${SUMS} FROM usage_days u CROSS JOIN LATERAL (
      SELECT array_agg(CASE g.name WHEN 'day' THEN u.day WHEN 'key' THEN u.key_id
        WHEN 'provider' THEN u.provider_id ELSE u.model END ORDER BY g.place) AS names
      FROM unnest($5::text[]) WITH ORDINALITY AS g(name, place)) v
    WHERE u.tenant_id = $1 AND u.day >= $2 AND u.day <= $3 AND ($4::text IS NULL OR u.key_id = $4)
      AND ($6::text[] IS NULL OR v.names > $6 COLLATE "C")
    GROUP BY v.names ORDER BY v.names COLLATE "C" LIMIT $7`,
  tokensSpent: `SELECT coalesce(sum(u.spent), 0)::bigint AS spent FROM usage_days u
    WHERE u.tenant_id = $1 AND u.day >= $2 AND u.day <= $3 AND ($4::text IS NULL OR u.key_id = $4)`,
} as const;
