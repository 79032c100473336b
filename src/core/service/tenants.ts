/** A tenant owns keys, memory, providers and receipts. Nothing of one is seen by another. */

/** The tenant of a service that has one. */
export const DEFAULT_TENANT = 'default';

/** Neither a space nor a key's public part has a colon, so a tenant and a name part without doubt. */
const TENANT = /^[a-z0-9][a-z0-9-]{0,62}$/;

export function isTenantId(text: string): boolean {
  return TENANT.test(text);
}
