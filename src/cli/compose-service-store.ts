import { backUpService, checkService, restoreService } from '../adapters/service-store/backup.ts';
import { openServiceStore } from '../adapters/service-store/sqlite-service-store.ts';
import type { ServiceBackups, ServiceStore } from '../ports/service-store.ts';

/** Where the commands of `svc service` get the database from: they know the ports alone. */

/** For one command, beside a service that may be running. Throws what a call throws. */
export function openStoreOfService(
  folder: string,
  { creates = false }: { readonly creates?: boolean } = {},
): ServiceStore {
  const own = creates ? { serves: true, creates: true } : {};
  return openServiceStore({ folder, ...own, report: () => undefined });
}

export const serviceBackups: ServiceBackups = {
  backUp: backUpService,
  restore: restoreService,
  check: checkService,
};
