/** The statements that put waiting passages into their index: see pending-passages.ts. */
export const PENDING = {
  partOf: `SELECT p.tableoid::bigint AS part FROM passages p WHERE p.tenant_id = $1 LIMIT 1`,
  putIn: `SELECT gin_clean_pending_list(i.indexrelid) FROM pg_index i
    JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam AND a.amname = 'gin'
    WHERE i.indrelid = $1::bigint::oid`,
} as const;
