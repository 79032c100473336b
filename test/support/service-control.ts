import { randomBytes } from 'node:crypto';
import type { AuditNote } from '../../src/core/service/audit.ts';
import type { StoredKey } from '../../src/core/service/keys.ts';
import { NO_LIMITS, type PlanLimits, SELF_HOSTED } from '../../src/core/service/plans.ts';
import type { ChangeOutcome } from '../../src/ports/control-store.ts';
import type { ServiceStore, TenantStore } from '../../src/ports/service-store.ts';
import { newId } from '../../src/core/service/ids.ts';

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
