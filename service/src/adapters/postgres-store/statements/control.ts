/**
 * The statements on tenants, plans, keys, admins, providers, the vault and the audit. Those that name
 * no tenant are listed in the test that reads every statement, each with its reason.
 */
export const CONTROL = {
  findCaller: `SELECT k.*, t.name AS tenant_name, t.plan, t.status, t.created_at AS tenant_created_at,
      p.limits
    FROM service_keys k JOIN tenants t ON t.tenant_id = k.tenant_id JOIN plans p ON p.name = t.plan
    WHERE k.id = $1 LIMIT 2`,
  isKeyId: `SELECT 1 AS found FROM service_keys WHERE id = $1`,
  getKey: `SELECT * FROM service_keys WHERE tenant_id = $1 AND id = $2`,
  listKeys: `SELECT * FROM service_keys WHERE tenant_id = $1 AND (created_at, id) > (
      coalesce((SELECT created_at FROM service_keys WHERE tenant_id = $1 AND id = $2), -1), $2::text)
      AND ($4::integer = 0 OR revoked_at IS NULL)
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
  listAdmins: `SELECT * FROM admins WHERE ($1::text IS NULL OR tenant_id = $1)
      AND (created_at, id) > (coalesce((SELECT created_at FROM admins WHERE id = $2), -1), $2::text)
    ORDER BY created_at, id LIMIT $3`,
  addAdmin: `INSERT INTO admins (tenant_id, id, name, role, hash, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)`,
  revokeAdmin: `UPDATE admins SET revoked_at = $2
    WHERE id = $1 AND revoked_at IS NULL AND ($3::text IS NULL OR tenant_id = $3)`,
  noteAdminUse: `UPDATE admins SET used_at = $2 WHERE id = $1`,

  /** Locks the chain of the tenant: changes of one tenant come one after the other. */
  lockAudit: `INSERT INTO audit_heads (tenant_id, number, hash) VALUES ($1, 0, '')
    ON CONFLICT (tenant_id) DO UPDATE SET number = audit_heads.number RETURNING number, hash`,
  addAudit: `INSERT INTO audit (tenant_id, number, at, event) VALUES ($1, $2, $3, $4)`,
  moveAudit: `UPDATE audit_heads SET number = $2, hash = $3 WHERE tenant_id = $1`,
  listAudit: `SELECT event FROM audit WHERE tenant_id = $1 AND number < $2
    ORDER BY number DESC LIMIT $3`,

  nextChange: `UPDATE meta SET value = (value::bigint + 1)::text WHERE name = 'changes'
    RETURNING value::bigint AS number`,
  addChange: `INSERT INTO changes (tenant_id, number, kind, id) VALUES ($1, $2, $3, $4)`,
  dropChanges: `DELETE FROM changes WHERE number <= $1`,
  listChanges: `SELECT m.value::bigint AS last, c.number, c.tenant_id AS tenant, c.kind, c.id
    FROM meta m LEFT JOIN changes c ON c.number > $1::bigint
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
  listSecrets: `SELECT * FROM secrets WHERE ($1::text IS NULL OR kek <> $1)
      AND (tenant_id, id) > ($2::text, $3::text) ORDER BY tenant_id, id LIMIT $4`,
  putSecret: `INSERT INTO secrets (tenant_id, id, owner, purpose, version, kek, wrapped, ciphertext,
      fingerprint, saved_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    ON CONFLICT (tenant_id, id) DO UPDATE SET owner = excluded.owner, purpose = excluded.purpose,
      version = excluded.version, kek = excluded.kek, wrapped = excluded.wrapped,
      ciphertext = excluded.ciphertext, fingerprint = excluded.fingerprint,
      saved_at = excluded.saved_at`,
  removeSecrets: `DELETE FROM secrets
    WHERE tenant_id = $1 AND owner = $2 AND NOT (id = ANY($3::text[]))`,
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
