/** A tenant owns keys, memory, providers and receipts. No tenant sees anything of another one. */

/** The tenant of a service that has only one. */
export const DEFAULT_TENANT = 'default';

/** The audit name for events of no single tenant, such as changes of plans. No tenant may have this name. */
export const SERVICE_TENANT = 'service';

/** Matches a tenant's id. Neither a space nor a key's public part has a colon, so `tenant:name` is unambiguous. */
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
