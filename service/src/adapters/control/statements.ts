import { USAGE_COUNTS } from '../../core/receipt-rows.ts';
import type { UsageGroup } from '../../ports/receipt-store.ts';

/**
 * The statements of the control plane, in SQL that SQLite and PostgreSQL share: see service/src/ports/rows.ts. A test
 * lists those that name no tenant, each with its reason.
 */
export const CONTROL = {
  findCaller: `SELECT k.*, t.name AS tenant_name, t.plan, t.status, t.created_at AS tenant_created_at,
      p.limits
    FROM service_keys k JOIN tenants t ON t.tenant_id = k.tenant_id JOIN plans p ON p.name = t.plan
    WHERE k.id = $1 LIMIT 2`,
  isKeyId: `SELECT 1 AS found FROM service_keys WHERE id = $1`,
  getKey: `SELECT * FROM service_keys WHERE tenant_id = $1 AND id = $2`,
  listKeys: `SELECT * FROM service_keys WHERE tenant_id = $1 AND (created_at, id) > (
      coalesce((SELECT created_at FROM service_keys WHERE tenant_id = $1 AND id = $2), -1), CAST($2 AS text))
      AND (CAST($4 AS integer) = 0 OR revoked_at IS NULL)
    ORDER BY created_at, id LIMIT $3`,
  countKeys: `SELECT count(*) AS keys FROM service_keys
    WHERE tenant_id = $1 AND revoked_at IS NULL`,
  addKey: `INSERT INTO service_keys (tenant_id, id, name, hash, scopes, spaces, allowed_models,
      tokens_per_day, tokens_per_month, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
  rotateKey: `UPDATE service_keys SET hash = $3, retired = $4, rotated_at = $5
    WHERE tenant_id = $1 AND id = $2`,
  revokeKey: `UPDATE service_keys SET revoked_at = $3
    WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL`,
  noteKeyUse: `UPDATE service_keys SET used_at = $3 WHERE tenant_id = $1 AND id = $2`,

  listTenants: `SELECT * FROM tenants WHERE tenant_id > $1 ORDER BY tenant_id LIMIT $2`,
  findTenant: `SELECT t.*, p.limits FROM tenants t JOIN plans p ON p.name = t.plan
    WHERE t.tenant_id = $1`,
  addTenant: `INSERT INTO tenants (tenant_id, name, plan, status, created_at)
    VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
  setTenant: `UPDATE tenants SET name = coalesce($2, name), plan = coalesce($3, plan),
      status = coalesce($4, status) WHERE tenant_id = $1`,
  listPlans: `SELECT * FROM plans WHERE name > $1 ORDER BY name LIMIT $2`,
  hasPlan: `SELECT 1 AS found FROM plans WHERE name = $1`,
  putPlan: `INSERT INTO plans (name, limits, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET limits = excluded.limits`,

  findAdmin: `SELECT * FROM admins WHERE id = $1 LIMIT 2`,
  listAdmins: `SELECT * FROM admins WHERE (CAST($1 AS text) IS NULL OR tenant_id = $1)
      AND (created_at, id) > (coalesce((SELECT created_at FROM admins WHERE id = $2), -1), CAST($2 AS text))
    ORDER BY created_at, id LIMIT $3`,
  addAdmin: `INSERT INTO admins (tenant_id, id, name, role, hash, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)`,
  revokeAdmin: `UPDATE admins SET revoked_at = $2
    WHERE id = $1 AND revoked_at IS NULL AND (CAST($3 AS text) IS NULL OR tenant_id = $3)`,
  noteAdminUse: `UPDATE admins SET used_at = $2 WHERE id = $1`,

  /**
   * Returns and locks the row with the number and hash of the tenant's last event; adds this row before the first
   * event. So a tenant's changes run one by one.
   */
  lockAudit: `INSERT INTO audit_heads (tenant_id, number, hash) VALUES ($1, 0, '')
    ON CONFLICT (tenant_id) DO UPDATE SET number = audit_heads.number RETURNING number, hash`,
  addAudit: `INSERT INTO audit (tenant_id, number, at, event) VALUES ($1, $2, $3, $4)`,
  dropAudit: `DELETE FROM audit WHERE at < $1`,
  moveAudit: `UPDATE audit_heads SET number = $2, hash = $3 WHERE tenant_id = $1`,
  listAudit: `SELECT event FROM audit WHERE tenant_id = $1 AND number < $2
    ORDER BY number DESC LIMIT $3`,

  nextChange: `UPDATE service_meta SET value = CAST(CAST(value AS bigint) + 1 AS text) WHERE name = 'changes'
    RETURNING CAST(value AS bigint) AS number`,
  addChange: `INSERT INTO changes (tenant_id, number, kind, id) VALUES ($1, $2, $3, $4)`,
  dropChanges: `DELETE FROM changes WHERE number <= $1`,
  listChanges: `SELECT CAST(m.value AS bigint) AS last, c.number, c.tenant_id AS tenant, c.kind, c.id
    FROM service_meta m LEFT JOIN changes c ON c.number > CAST($1 AS bigint)
    WHERE m.name = 'changes' ORDER BY c.number LIMIT $2`,

  getSettings: `SELECT version, settings FROM account_settings WHERE tenant_id = $1`,
  putSettings: `INSERT INTO account_settings (tenant_id, version, settings) VALUES ($1, $2, $3)
    ON CONFLICT (tenant_id) DO UPDATE SET version = excluded.version,
      settings = excluded.settings`,

  listProviders: `SELECT facts FROM providers WHERE tenant_id = $1 ORDER BY id`,
  putProvider: `INSERT INTO providers (tenant_id, id, name, version, facts) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant_id, id) DO UPDATE SET name = excluded.name, version = excluded.version,
      facts = excluded.facts`,
  removeProvider: `DELETE FROM providers WHERE tenant_id = $1 AND id = $2`,

  findSecret: `SELECT * FROM secrets WHERE tenant_id = $1 AND id = $2`,
  listSecrets: `SELECT * FROM secrets WHERE (CAST($1 AS text) IS NULL OR kek <> $1)
      AND (tenant_id, id) > (CAST($2 AS text), CAST($3 AS text)) ORDER BY tenant_id, id LIMIT $4`,
  putSecret: `INSERT INTO secrets (tenant_id, id, owner, purpose, version, kek, wrapped, ciphertext,
      fingerprint, saved_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (tenant_id, id) DO UPDATE SET owner = excluded.owner, purpose = excluded.purpose,
      version = excluded.version, kek = excluded.kek, wrapped = excluded.wrapped,
      ciphertext = excluded.ciphertext, fingerprint = excluded.fingerprint,
      saved_at = excluded.saved_at`,
  ownedSecrets: `SELECT id FROM secrets WHERE tenant_id = $1 AND owner = $2`,
  removeSecret: `DELETE FROM secrets WHERE tenant_id = $1 AND id = $2`,
  rewrapSecret: `UPDATE secrets SET kek = $5, wrapped = $6
    WHERE tenant_id = $1 AND id = $2 AND version = $3 AND kek = $4`,
  masterKeys: `SELECT m.*, (SELECT count(*) FROM secrets s WHERE s.kek = m.id) AS secrets
    FROM master_keys m ORDER BY m.created_at, m.id`,
  holdMasterKey: `SELECT state FROM master_keys WHERE id = $1 FOR SHARE`,
  lockMasterKey: `SELECT state FROM master_keys WHERE id = $1 FOR UPDATE`,
  demoteMasterKey: `UPDATE master_keys SET state = 'decrypt_only' WHERE state = 'active'`,
  addMasterKey: `INSERT INTO master_keys (id, state, wrapped, ciphertext, created_at)
    VALUES ($1, 'active', $2, $3, $4)`,
  retireMasterKey: `UPDATE master_keys SET state = 'retired', retired_at = $2 WHERE id = $1`,
  signingKeys: `SELECT * FROM signing_keys ORDER BY retired_at IS NOT NULL, retired_at DESC, kid`,
  retireSigningKeys: `UPDATE signing_keys SET retired_at = $1 WHERE retired_at IS NULL`,
  addSigningKey: `INSERT INTO signing_keys (kid, x, created_at) VALUES ($1, $2, $3)`,
} as const;

/** Makes the statements on leases. `now`: the engine's expression for milliseconds since 1970 by its clock. */
export const leaseStatements = (now: string) =>
  ({
    dropLeases: `DELETE FROM leases WHERE ends <= ${now}`,
    takeLease: `INSERT INTO leases (tenant_id, name, holder, note, ends)
      VALUES ($1, $2, $3, $4, ${now} + CAST($5 AS bigint))
      ON CONFLICT (tenant_id, name) DO UPDATE SET holder = excluded.holder, note = excluded.note,
        ends = excluded.ends
      WHERE leases.ends <= ${now} OR leases.holder = excluded.holder`,
    findLease: `SELECT name, holder, note FROM leases WHERE tenant_id = $1 AND name = $2`,
    renewLease: `UPDATE leases SET ends = ${now} + CAST($4 AS bigint)
      WHERE tenant_id = $1 AND name = $2 AND holder = $3 AND ends > ${now}`,
    endLease: `DELETE FROM leases WHERE tenant_id = $1 AND name = $2 AND holder = $3`,
    endAnswer: `DELETE FROM leases WHERE tenant_id = $1 AND name = $2`,
    listLeases: `SELECT name, holder, note FROM leases
      WHERE tenant_id = $1 AND substr(name, 1, length(CAST($2 AS text))) = $2 AND ends > ${now}
      ORDER BY name`,
  }) as const;

export const ANSWERS = {
  find: `SELECT request_hash, body, at FROM answers
    WHERE tenant_id = $1 AND key_id = $2 AND idempotency_key = $3 AND at > $4`,
  keep: `INSERT INTO answers (tenant_id, key_id, idempotency_key, request_hash, body, at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant_id, key_id, idempotency_key) DO UPDATE SET
      request_hash = excluded.request_hash, body = excluded.body, at = excluded.at`,
  drop: `DELETE FROM answers WHERE at <= $1`,
} as const;

export const LEDGER = {
  find: `SELECT key, block, form, at FROM tenant_ledger
    WHERE tenant_id = $1 AND key = ANY($2) ORDER BY key`,
  makeForgotten: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at)
    VALUES ($1, $2, '', 'text', -1) ON CONFLICT DO NOTHING`,
  holdForgotten: `SELECT at FROM tenant_ledger WHERE tenant_id = $1 AND key = $2 FOR SHARE`,
  markForgotten: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at)
    VALUES ($1, $2, '', 'text', $3) ON CONFLICT (tenant_id, key) DO UPDATE SET at = CASE
      WHEN excluded.at > tenant_ledger.at THEN excluded.at ELSE tenant_ledger.at END`,
  blocks: `SELECT key, block FROM tenant_ledger WHERE tenant_id = $1 AND block <> ''`,
  empty: `UPDATE tenant_ledger SET block = '', at = $3 WHERE tenant_id = $1 AND key = ANY($2)`,
  addOnce: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING`,
  add: `INSERT INTO tenant_ledger (tenant_id, key, block, form, at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant_id, key) DO UPDATE SET block = excluded.block, form = excluded.form,
      at = excluded.at
    WHERE excluded.at >= tenant_ledger.at`,
  drop: `DELETE FROM tenant_ledger WHERE at < $1 AND key LIKE '%:%'`,
} as const;

export const RECEIPTS = {
  add: `INSERT INTO receipts (tenant_id, id, key_id, provider_id, model, status, body)
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING tenant_id, id`,
  raiseHead: `INSERT INTO receipt_heads (tenant_id, node, last_seq) VALUES ($1, $2, $3)
    ON CONFLICT (tenant_id, node) DO UPDATE SET last_seq = CASE
      WHEN excluded.last_seq > receipt_heads.last_seq THEN excluded.last_seq
      ELSE receipt_heads.last_seq END
    WHERE receipt_heads.body IS NULL`,
  addUsage: `INSERT INTO usage_days (tenant_id, day, key_id, provider_id, model, ${USAGE_COUNTS.join(', ')})
    VALUES ($1, $2, $3, $4, $5, ${USAGE_COUNTS.map((_, at) => `$${at + 6}`).join(', ')})
    ON CONFLICT (tenant_id, day, key_id, provider_id, model) DO UPDATE SET
      ${USAGE_COUNTS.map((name) => `${name} = usage_days.${name} + excluded.${name}`).join(', ')}`,
  find: `SELECT id, body FROM receipts WHERE tenant_id = $1 AND id = $2`,
  drop: `DELETE FROM receipts WHERE tenant_id = $1 AND id IN (SELECT r.id FROM receipts r
    WHERE r.tenant_id = $1 AND r.id < $2 ORDER BY r.id LIMIT $3)`,
  listHeads: `SELECT tenant_id, node, last_seq, body FROM receipt_heads
    WHERE tenant_id = $1 AND node > $2 ORDER BY node LIMIT $3`,
  openHeads: `SELECT tenant_id, node, last_seq, body FROM receipt_heads
    WHERE node = $1 AND body IS NULL ORDER BY tenant_id LIMIT $2`,
  closeHead: `INSERT INTO receipt_heads (tenant_id, node, last_seq, body) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant_id, node) DO UPDATE SET last_seq = excluded.last_seq, body = excluded.body
    WHERE receipt_heads.body IS NULL`,
  tokensSpent: `SELECT CAST(coalesce(sum(spent_tokens), 0) AS bigint) AS spent FROM usage_days
    WHERE tenant_id = $1 AND day >= $2 AND day <= $3
      AND (CAST($4 AS text) IS NULL OR key_id = $4)`,
} as const;

/**
 * The SQL conditions of a page of receipts, each without its value. The ids of the page lie between the values of
 * `behind` and `before`.
 */
export const PAGE_CONDITIONS = {
  behind: 'id > ',
  before: 'id < ',
  from: 'id >= ',
  to: 'id < ',
  status: 'status = ',
  model: 'model = ',
  keyId: 'key_id = ',
  providerId: 'provider_id = ',
} as const;

/**
 * Writes the query for a page of receipts with these conditions. $1 is the tenant. The values of the conditions follow
 * in their order, and then the limit. Unused conditions are left out, because with them SQLite would use no index.
 */
export function receiptPage(
  asked: readonly (keyof typeof PAGE_CONDITIONS)[],
  direction: 'ASC' | 'DESC',
): string {
  const conditions = asked.map((name, at) => ` AND ${PAGE_CONDITIONS[name]}$${at + 2}`).join('');
  return `SELECT id, body FROM receipts WHERE tenant_id = $1${conditions}
    ORDER BY id ${direction} LIMIT $${asked.length + 2}`;
}

const GROUP_COLUMNS: Readonly<Record<UsageGroup, string>> = {
  day: 'day',
  key: 'key_id',
  provider: 'provider_id',
  model: 'model',
};

/**
 * Writes the query for sums of usage by these groups. `isBehind`: only the sums after a given one, whose values of the
 * groups are $6, $7 and so on.
 */
export function usageSums(groups: readonly UsageGroup[], isBehind: boolean): string {
  const columns = groups.map((group) => GROUP_COLUMNS[group]).join(', ');
  const last = groups.map((_, at) => `$${at + 6}`).join(', ');
  const sums = USAGE_COUNTS.map((name) => `CAST(sum(${name}) AS bigint) AS ${name}`).join(', ');
  const named = groups.map((group, at) => `${GROUP_COLUMNS[group]} AS group_${at}`).join(', ');
  return `SELECT ${named}, ${sums} FROM usage_days
    WHERE tenant_id = $1 AND day >= $2 AND day <= $3 AND (CAST($4 AS text) IS NULL OR key_id = $4)
      ${isBehind ? `AND (${columns}) > (${last})` : ''}
    GROUP BY ${columns} ORDER BY ${columns} LIMIT $5`;
}
