import type { Lease, StandingLease } from '../../ports/leases.ts';
import type { TenantStore } from '../../ports/service-store.ts';
import type { Rows } from './rows.ts';
import type { TenantPlace } from './open-database.ts';
import { LEASES } from './statements/leases.ts';

/** Dropping old rows on every write would cost more than the write. */
const WRITES_PER_DROP = 64;

export function leaseCalls({ tenant, database }: TenantPlace) {
  let writes = 0;
  return {
    async takeLease(lease) {
      const { connections } = await database();
      writes += 1;
      const drops = writes % WRITES_PER_DROP === 1;
      return connections.write(async (rows) => {
        if (drops) await rows.run(LEASES.dropLeases, tenant);
        return takeLease(rows, tenant, lease);
      });
    },
    async renewLease({ name, holder, ms }) {
      const { connections } = await database();
      const values = [tenant, name, holder, ms];
      return (await connections.write((rows) => rows.run(LEASES.renewLease, ...values))) > 0;
    },
    async endLease({ name, holder }) {
      const { connections } = await database();
      await connections.write((rows) => rows.run(LEASES.endLease, tenant, name, holder));
    },
    async listLeases(start) {
      const { connections } = await database();
      return connections.read((rows) => rows.all<StandingLease>(LEASES.listLeases, tenant, start));
    },
  } satisfies Partial<TenantStore>;
}

/** Undefined: this holder has the lease now. Otherwise the note of the present holder. */
export async function takeLease(
  rows: Rows,
  tenant: string,
  { name, holder, note, ms }: Lease,
): Promise<string | undefined> {
  if ((await rows.run(LEASES.takeLease, tenant, name, holder, note, ms)) > 0) return undefined;
  const held = await rows.get<StandingLease>(LEASES.findLease, tenant, name);
  return held?.note ?? '';
}
