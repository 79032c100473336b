import { groupBy } from '../../../../src/core/bytes/group-by.ts';
import type { LedgerRow } from '../../../../src/ports/ledger.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import type { LedgerStore } from '../journals/ledger.ts';

/**
 * The table of the ledger in a service's store. The key of an entry names its tenant (`keyOf` in
 * core/ledger/entries.ts), and each row is read and written through that tenant's part of the store.
 */
export function tenantLedgerStore(store: Pick<ServiceStore, 'of'>): LedgerStore {
  return {
    findEntries: async (keys) => {
      const found = await Promise.all(
        [...groupBy(keys.map(splitKey), ({ tenant }) => tenant)].map(([tenant, own]) =>
          store.of(tenant).findLedger(own.map(({ key }) => key)),
        ),
      );
      return found.flat();
    },
    recordEntries: async (rows) => {
      const placed = rows.map((row) => ({ row, tenant: splitKey(row.key).tenant }));
      for (const [tenant, own] of groupBy(placed, (one) => one.tenant)) {
        // oxlint-disable-next-line no-await-in-loop -- One store writes for all of them.
        await store.of(tenant).recordLedger(own.map(({ row }): LedgerRow => row));
      }
    },
  };
}

/** `t:` and the tenant, then the key in it. */
function splitKey(key: string): { readonly tenant: string; readonly key: string } {
  const [, tenant = ''] = key.split(':', 2);
  return { tenant, key };
}
