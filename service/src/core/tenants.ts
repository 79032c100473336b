/** A tenant owns keys, memory, providers and receipts. Nothing of one is seen by another. */

/** The tenant of a service that has one. */
export const DEFAULT_TENANT = 'default';

/**
 * Events that belong to no single tenant (plans, admins) are on record under this name. No tenant
 * may have it.
 */
export const SERVICE_TENANT = 'service';

/** Neither a space nor a key's public part has a colon, so a tenant and a name part without doubt. */
export const TENANT_ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export function isTenantId(text: string): boolean {
  return TENANT_ID.test(text);
}

export type TenantStatus = 'active' | 'suspended' | 'deleted';

export interface Tenant {
  readonly tenantId: string;
  readonly name: string;
  readonly plan: string;
  readonly status: TenantStatus;
  readonly createdAt: number;
}
