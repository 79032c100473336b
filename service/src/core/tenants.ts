/** A tenant owns keys, memory, providers and receipts. No tenant sees anything of another one. */

/** The tenant that every new service has. Console calls of an operator that name no tenant are for this one. */
export const DEFAULT_TENANT = 'default';

/**
 * Takes the place of a tenant in rows that belong to the whole service, such as audit events of plans and leases of
 * nodes. No tenant may have this id.
 */
export const SERVICE_TENANT = 'service';

/** Matches a tenant's id. It contains no colon, so in `tenant:space` the tenant ends at the colon. */
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
