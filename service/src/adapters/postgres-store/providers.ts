import type { ChangeOutcome, TenantChange } from '../../ports/control-store.ts';
import { providerOf, refusePut, secretsOf } from '../service-store/providers.ts';
import type { Rows } from './rows.ts';
import { CONTROL } from './statements/control.ts';
import { putSecret } from './vault.ts';

/** Providers as rows. Their secrets are rows of the vault, and change in the same transaction. */

type ProviderPut = Extract<TenantChange, { what: 'provider.put' }>;

/** `limit`: of the plan; null where it names none. */
export async function putProvider(
  rows: Rows,
  { tenant, limit }: { readonly tenant: string; readonly limit: number | null },
  change: ProviderPut,
): Promise<ChangeOutcome> {
  const { provider, secrets } = change;
  const found = await rows.all<{ facts: string }>(CONTROL.listProviders, tenant);
  const others = found.map(({ facts }) => providerOf(facts));
  const refused = refusePut(change, others, limit);
  if (refused !== undefined) return refused;
  const { providerId, name, version } = provider;
  await rows.run(CONTROL.putProvider, tenant, providerId, name, version, JSON.stringify(provider));
  for (const secret of secrets) {
    // oxlint-disable-next-line no-await-in-loop -- One connection answers one after the other.
    await putSecret(rows, { ...secret, tenant });
  }
  await rows.run(CONTROL.removeSecrets, tenant, providerId, [...secretsOf(provider)]);
  return 'done';
}

/** Its secrets are destroyed with it. */
export async function removeProvider(
  rows: Rows,
  tenant: string,
  providerId: string,
): Promise<ChangeOutcome> {
  if ((await rows.run(CONTROL.removeProvider, tenant, providerId)) === 0) return 'missing';
  await rows.run(CONTROL.removeSecrets, tenant, providerId, []);
  return 'done';
}
