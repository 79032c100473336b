import { randomBytes } from 'node:crypto';
import type { AuditNote } from '../../src/core/audit.ts';
import type { StoredKey } from '../../../src/core/memory-api/keys.ts';
import { NO_LIMITS, type PlanLimits, SELF_HOSTED } from '../../src/core/plans.ts';
import type { ChangeOutcome } from '../../src/ports/control-store.ts';
import type { TenantProvider } from '../../src/core/providers.ts';
import type { ServiceStore, TenantStore } from '../../src/ports/service-store.ts';
import { newId } from '../../src/core/ids.ts';
import { FIRST } from './test-vault.ts';

/** Changes of a service's store as a test makes them: each with an event of its own. */

export function noteOfTest(kind: AuditNote['kind'] = 'key.created'): AuditNote {
  return {
    event_id: newId('evt', randomBytes),
    at: 1,
    kind,
    actor: { type: 'cli', id: 'test', ip_hash: null },
    target: { type: 'key', id: 'k' },
    details: {},
  };
}

export function addKeyTo(
  store: TenantStore,
  key: Omit<StoredKey, 'tenant'>,
): Promise<ChangeOutcome> {
  return store.apply({ what: 'key.add', key }, noteOfTest());
}

export function revokeKeyOf(store: TenantStore, keyId: string, at = 4): Promise<ChangeOutcome> {
  return store.apply({ what: 'key.revoke', keyId, at }, noteOfTest('key.revoked'));
}

export function providerOf(given: Partial<TenantProvider> = {}): TenantProvider {
  return {
    providerId: 'prov_a',
    name: 'gateway',
    kind: 'custom',
    apiStyle: 'openai_responses',
    baseUrl: 'https://models.example.com',
    auth: 'bearer',
    credential: { secretId: 'sec_a', fingerprint: 'fp_00000000', savedAt: 1 },
    headers: [],
    query: [],
    defaultModel: 'gpt-5',
    allowedModels: ['gpt-5'],
    isEnabled: true,
    version: 1,
    createdAt: 1,
    updatedAt: 1,
    ...given,
  };
}

/** With a secret for each of its ids; the vault's own tests seal real ones. */
export function putProvider(
  store: TenantStore,
  provider: TenantProvider,
  ifVersion?: number,
): Promise<ChangeOutcome> {
  const { credential, providerId: owner, version } = provider;
  const bytes = new Uint8Array([version]);
  const secrets = [credential]
    .filter((one) => one !== undefined)
    .map(({ secretId, fingerprint, savedAt }) => ({
      tenant: 'nobody',
      secretId,
      owner,
      purpose: 'credential',
      version,
      kek: FIRST,
      wrapped: bytes,
      ciphertext: bytes,
      fingerprint,
      savedAt,
    }));
  const change = { what: 'provider.put', provider, ifVersion, secrets } as const;
  return store.apply(change, noteOfTest('provider.created'));
}

export function removeProvider(store: TenantStore, providerId: string): Promise<ChangeOutcome> {
  return store.apply({ what: 'provider.remove', providerId }, noteOfTest('provider.deleted'));
}

/** Secrets need a master key that they are under. */
export async function addMasterKey(store: ServiceStore): Promise<void> {
  const bytes = new Uint8Array([1]);
  const canary = { kek: FIRST, wrapped: bytes, ciphertext: bytes };
  await store.apply(
    { what: 'master.add', id: FIRST, canary, at: 1 },
    noteOfTest('vault.kek_added'),
  );
}

/** The one that signs from now on; the one before it is retired at 5. */
export async function addSigningKey(store: ServiceStore, kid: string): Promise<void> {
  const bytes = new Uint8Array([1]);
  const place = { tenant: 'service', secretId: kid, owner: kid, purpose: 'signing', version: 1 };
  const sealed = { kek: FIRST, wrapped: bytes, ciphertext: bytes };
  const secret = { ...place, ...sealed, fingerprint: 'fp_1', savedAt: 2 };
  const change = { what: 'signing.add', kid, x: kid, secret, at: 5 } as const;
  await store.apply(change, noteOfTest('signing_key.rotated'));
}

export async function addTenant(
  store: ServiceStore,
  tenantId: string,
  limits: Partial<PlanLimits> = {},
): Promise<void> {
  const isLimited = Object.keys(limits).length > 0;
  const plan = isLimited ? `plan-${tenantId}` : SELF_HOSTED;
  if (isLimited) {
    const made = { name: plan, limits: { ...NO_LIMITS, ...limits }, createdAt: 1 };
    await store.apply({ what: 'plan.put', plan: made, isNew: true }, noteOfTest('plan.created'));
  }
  const tenant = { tenantId, name: tenantId, plan, status: 'active', createdAt: 1 } as const;
  await store.apply({ what: 'tenant.add', tenant }, noteOfTest('tenant.created'));
}
