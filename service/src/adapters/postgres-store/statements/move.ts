import type { MovedTable } from '../../../ports/service-move.ts';

/**
 * The statements of a move from a file. A row brings its own tenant, so these name none besides; each
 * may be sent again after a kill.
 */

const KEEP = 'ON CONFLICT DO NOTHING';

const adding = (table: MovedTable, columns: string, conflict = KEEP): string =>
  `INSERT INTO ${table} (${columns})
    SELECT ${columns} FROM json_populate_recordset(NULL::${table}, $1::json) ${conflict}`;

export const ADDING: Readonly<Record<MovedTable, string>> = {
  plans: adding(
    'plans',
    'name, limits, created_at',
    'ON CONFLICT (name) DO UPDATE SET limits = excluded.limits, created_at = excluded.created_at',
  ),
  tenants: adding(
    'tenants',
    'tenant_id, name, plan, status, created_at',
    `ON CONFLICT (tenant_id) DO UPDATE SET name = excluded.name, plan = excluded.plan,
      status = excluded.status, created_at = excluded.created_at`,
  ),
  master_keys: adding('master_keys', 'id, state, wrapped, ciphertext, created_at, retired_at'),
  secrets: adding(
    'secrets',
    `tenant_id, id, owner, purpose, version, kek, wrapped, ciphertext, fingerprint, saved_at`,
  ),
  signing_keys: adding('signing_keys', 'kid, x, created_at, retired_at'),
  service_keys: adding(
    'service_keys',
    `tenant_id, id, name, hash, retired, scopes, spaces, allowed_models, tokens_per_day,
      tokens_per_month, created_at, expires_at, revoked_at, used_at, rotated_at`,
  ),
  admins: adding(
    'admins',
    'tenant_id, id, name, role, hash, created_at, expires_at, revoked_at, used_at',
  ),
  providers: adding('providers', 'tenant_id, id, name, version, facts'),
  account_settings: adding('account_settings', 'tenant_id, version, settings'),
  audit_heads: adding('audit_heads', 'tenant_id, number, hash'),
  audit: adding('audit', 'tenant_id, number, at, event'),
  usage_days: adding(
    'usage_days',
    `tenant_id, day, key_id, provider_id, model, requests, failed, original_input, forwarded_input,
      recalled, elided, input, cache_read, output, spent`,
  ),
  receipt_heads: adding('receipt_heads', 'tenant_id, node, last_seq, body'),
  receipts: adding('receipts', 'tenant_id, id, key_id, provider_id, model, status, body'),
  tenant_ledger: adding('tenant_ledger', 'tenant_id, key, block, form, at'),
};

export const counting = (table: MovedTable): string => `SELECT count(*) AS count FROM ${table}`;

export const MOVE = {
  /** Anything that only a service that was used has. */
  isUsed: `SELECT EXISTS (SELECT FROM service_keys) OR EXISTS (SELECT FROM spaces)
    OR EXISTS (SELECT FROM admins) OR EXISTS (SELECT FROM receipts) AS used`,
  addPurges: `INSERT INTO purges (tenant_id, space_id, id, scope, state, records, items, bytes,
      generation_before, generation_after, requested_by, requested_at, erased_at, upto)
    SELECT $1, s.id, m.id, m.scope, m.state, m.records, m.items, m.bytes, m.generation_before,
      m.generation_after, m.requested_by, m.requested_at, m.erased_at, m.upto
    FROM json_populate_recordset(NULL::purges, $3::json) m
    JOIN spaces s ON s.tenant_id = $1 AND s.name = $2
    ${KEEP}`,
  addPurged: `INSERT INTO purged (tenant_id, space_id, digest, ref, text_ref, at)
    SELECT $1, s.id, m.digest, m.ref, m.text_ref, m.at
    FROM json_populate_recordset(NULL::purged, $3::json) m
    JOIN spaces s ON s.tenant_id = $1 AND s.name = $2
    ${KEEP}`,
  /** When a source was seen first says also what was purged of it. */
  setSources: `UPDATE sources SET first_seen = m.first_seen, last_seen = m.last_seen
    FROM json_populate_recordset(NULL::sources, $3::json) m
    JOIN spaces s ON s.tenant_id = $1 AND s.name = $2
    WHERE sources.tenant_id = $1 AND sources.space_id = s.id AND sources.session = m.session
      AND sources.client = m.client`,
  records: `SELECT r.digest, r.bytes FROM records r
    JOIN spaces s ON s.tenant_id = $1 AND s.name = $2 AND s.id = r.space_id
    WHERE r.tenant_id = $1 AND r.digest = ANY($3::text[])`,
  receipts: `SELECT r.tenant_id, r.id, r.body
    FROM unnest($1::text[], $2::text[]) AS e(tenant_id, id)
    JOIN receipts r ON r.tenant_id = e.tenant_id AND r.id = e.id`,
} as const;
