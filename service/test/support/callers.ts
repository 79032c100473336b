import type { StoredKey } from '../../../src/core/memory-api/keys.ts';
import { NO_LIMITS, type PlanLimits } from '../../src/core/plans.ts';
import type { Caller } from '../../src/ports/control-store.ts';

/** A caller of a tenant whose plan has these limits. */
export function callerOf(limits: Partial<PlanLimits>, key: Partial<StoredKey> = {}): Caller {
  const tenant = key.tenant ?? 'acme';
  return {
    key: { tenant, keyId: 'k1', name: 'k', hash: 'h', scopes: [], createdAt: 1, ...key },
    tenant: {
      tenantId: tenant,
      name: tenant,
      plan: 'p',
      status: 'active',
      createdAt: 1,
      limits: { ...NO_LIMITS, ...limits },
    },
  };
}
