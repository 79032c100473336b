import type { ServiceStore, TenantStore } from '../ports/service-store.ts';

/** The same store, where `change` gives other methods to the part of each tenant. */
export function withTenantsChanged(
  store: ServiceStore,
  change: (own: TenantStore) => Partial<TenantStore>,
): ServiceStore {
  return {
    ...store,
    of: (tenant) => {
      const own = store.of(tenant);
      return { ...own, ...change(own) };
    },
  };
}
