import { findClash, PROVIDERS_MAX, type TenantProvider } from '../../core/providers.ts';
import type { ChangeOutcome, TenantChange } from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';
import type { VaultTable } from './vault-table.ts';

/** Providers as rows. Their secrets are rows of the vault, and change in the same transaction. */

type ProviderPut = Extract<TenantChange, { what: 'provider.put' }>;

export class ProviderTable {
  readonly #database: Database;
  readonly #vault: VaultTable;

  constructor(database: Database, vault: VaultTable) {
    this.#database = database;
    this.#vault = vault;
  }

  list(tenant: string): TenantProvider[] {
    const sql = 'SELECT facts FROM providers WHERE tenant = ? ORDER BY id';
    return this.#database.all<{ facts: string }>(sql, tenant).map(({ facts }) => providerOf(facts));
  }

  /** `limit`: of the plan; null where it names none. */
  put(tenant: string, change: ProviderPut, limit: number | null): ChangeOutcome {
    const { provider, secrets } = change;
    const refused = refusePut(change, this.list(tenant), limit);
    if (refused !== undefined) return refused;
    this.#database.run(
      `INSERT INTO providers (tenant, id, name, version, facts) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name,
         version = excluded.version, facts = excluded.facts`,
      tenant,
      provider.providerId,
      provider.name,
      provider.version,
      JSON.stringify(provider),
    );
    for (const secret of secrets) this.#vault.put({ ...secret, tenant });
    this.#vault.removeOf(tenant, provider.providerId, secretsOf(provider));
    return 'done';
  }

  /** Its secrets are destroyed with it. */
  remove(tenant: string, providerId: string): boolean {
    const sql = 'DELETE FROM providers WHERE tenant = ? AND id = ?';
    if (this.#database.run(sql, tenant, providerId) === 0) return false;
    this.#vault.removeOf(tenant, providerId);
    return true;
  }
}

/** Why the provider may not be kept beside the tenant's others; undefined when it may. */
export function refusePut(
  { provider, ifVersion }: Pick<ProviderPut, 'provider' | 'ifVersion'>,
  others: readonly TenantProvider[],
  limit: number | null,
): ChangeOutcome | undefined {
  const before = others.find(({ providerId }) => providerId === provider.providerId);
  if (ifVersion !== undefined && before === undefined) return 'missing';
  if (ifVersion !== before?.version) return 'changed';
  const isFull = others.length >= Math.min(limit ?? PROVIDERS_MAX, PROVIDERS_MAX);
  if (before === undefined && isFull) return 'limit';
  const namesake = others.find(({ name }) => name === provider.name);
  if (namesake !== undefined && namesake.providerId !== provider.providerId) return 'exists';
  return findClash(provider, others) === undefined ? undefined : 'clash';
}

export function secretsOf({ credential, headers, query }: TenantProvider): ReadonlySet<string> {
  const ids = [credential, ...headers, ...query].map((one) => one?.secretId);
  return new Set(ids.filter((id) => id !== undefined));
}

// Only this file writes these texts.
export function providerOf(facts: string): TenantProvider {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return JSON.parse(facts) as TenantProvider;
}
