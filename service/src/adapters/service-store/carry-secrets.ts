import type { TenantProvider } from '../../core/providers.ts';
import { SERVICE_TENANT } from '../../core/tenants.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import { providerOf, ProviderTable, secretsOf } from './providers.ts';
import { VaultTable } from './vault-table.ts';

/**
 * Secrets that were replaced since a backup: a restore must not bring the old ones back, because they
 * may have been replaced for having leaked.
 */

export function carrySecrets(from: Database, to: Database): void {
  carryMasterKeys(from, to);
  carryDeletedProviders(from, to);
  carryCredentials(from, to);
  carrySigningKeys(from, to);
}

interface MasterRow {
  readonly id: string;
  readonly state: string;
  readonly wrapped: Uint8Array;
  readonly ciphertext: Uint8Array;
  readonly created_at: number;
  readonly retired_at: number | null;
}

/** The present database knows which keys there are now; a backup may still need a retired one. */
function carryMasterKeys(from: Database, to: Database): void {
  const rows = from.all<MasterRow>('SELECT * FROM master_keys ORDER BY created_at');
  if (rows.some(({ state }) => state === 'active')) {
    to.run("UPDATE master_keys SET state = 'decrypt_only' WHERE state = 'active'");
  }
  for (const { id, state, wrapped, ciphertext, created_at: at, retired_at: retiredAt } of rows) {
    to.run(
      `INSERT INTO master_keys (id, state, wrapped, ciphertext, created_at, retired_at)
       VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
      id,
      state,
      wrapped,
      ciphertext,
      at,
      retiredAt,
    );
    if (state === 'active') to.run("UPDATE master_keys SET state = 'active' WHERE id = ?", id);
  }
}

/** A deleted provider stays deleted, and its secrets destroyed. The audit knows which ones were. */
function carryDeletedProviders(from: Database, to: Database): void {
  const table = new ProviderTable(to, new VaultTable(to));
  const sql = `SELECT tenant, json_extract(event, '$.target.id') AS id FROM audit
    WHERE json_extract(event, '$.kind') = 'provider.deleted'`;
  for (const { tenant, id } of from.all<{ tenant: string; id: string }>(sql)) {
    table.remove(tenant, id);
  }
}

/** The provider itself goes back to the backup: its name and its models may have changed for a reason. */
function carryCredentials(from: Database, to: Database): void {
  const [present, vault] = [new VaultTable(from), new VaultTable(to)];
  const rows = from.all<{ tenant: string; facts: string }>('SELECT tenant, facts FROM providers');
  for (const { tenant, facts } of rows) {
    const now = providerOf(facts);
    const then = to.get<{ facts: string }>(
      'SELECT facts FROM providers WHERE tenant = ? AND id = ? AND version < ?',
      tenant,
      now.providerId,
      now.version,
    );
    if (then === undefined) continue;
    const joined = withSecretsOf(providerOf(then.facts), now);
    for (const secretId of secretsOf(joined)) {
      const secret = present.find(tenant, secretId);
      if (secret !== undefined) vault.put(secret);
    }
    vault.removeOf(tenant, now.providerId, secretsOf(joined));
    to.run(
      'UPDATE providers SET version = ?, facts = ? WHERE tenant = ? AND id = ?',
      joined.version,
      JSON.stringify(joined),
      tenant,
      joined.providerId,
    );
  }
}

function withSecretsOf(then: TenantProvider, now: TenantProvider): TenantProvider {
  const { credential: _, ...rest } = then;
  const { credential, headers, query, version, updatedAt } = now;
  const given = credential === undefined ? {} : { credential };
  return { ...rest, ...given, headers, query, version, updatedAt };
}

/** The present signing key remains active; signatures of the backup's keys can still be checked. */
function carrySigningKeys(from: Database, to: Database): void {
  interface Row {
    readonly kid: string;
    readonly x: string;
    readonly created_at: number;
    readonly retired_at: number | null;
  }
  const [present, vault] = [new VaultTable(from), new VaultTable(to)];
  for (const { kid, x, created_at: at, retired_at: retiredAt } of from.all<Row>(
    'SELECT * FROM signing_keys',
  )) {
    to.run(
      `INSERT INTO signing_keys (kid, x, created_at, retired_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (kid) DO UPDATE SET retired_at = excluded.retired_at`,
      kid,
      x,
      at,
      retiredAt,
    );
    const secret = present.find(SERVICE_TENANT, kid);
    if (secret !== undefined) vault.put(secret);
  }
}
