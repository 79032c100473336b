import { backUpService, checkService, restoreService } from '../adapters/service-store/backup.ts';
import { markForgotten } from '../../../src/adapters/files/marks.ts';
import { lockServiceFolder } from '../adapters/service-store/folder-lock.ts';
import { openServiceStore } from '../adapters/service-store/sqlite-service-store.ts';
import { SETTINGS_FILE, writePrivate } from '../adapters/service-store/service-files.ts';
import { makeMasterKeyFile, newMasterKeyId } from '../adapters/vault/service-master-keys.ts';
import type { ServiceSettings } from '../core/settings.ts';
import type { ServiceBackups, ServiceStore } from '../ports/service-store.ts';
import { withTenantsChanged } from '../server/wrapped-store.ts';
import { openServerStore, serverOf, type ServicePlace } from './compose-database.ts';
import { MemoryError } from '../../../src/core/errors.ts';

export type { ServicePlace } from './compose-database.ts';

/** Where the commands of `svc-service` get the database from: they know the ports alone. */

/** For one command, beside a service that may be running. Throws what a call throws. */
export async function openStoreOfService(
  place: ServicePlace,
  { creates = false }: { readonly creates?: boolean } = {},
): Promise<ServiceStore> {
  const { folder } = place;
  const server = await serverOf(place);
  if (server !== undefined) return marking(folder, await openServerStore(server));
  const own = creates ? { serves: true, creates: true } : {};
  return openServiceStore({ folder, ...own, report: () => undefined });
}

/** For a process that serves: it has the folder to itself until the store is closed. */
export async function openServingStore(
  place: ServicePlace,
  {
    spaceBytesMax,
    report = () => undefined,
  }: { readonly spaceBytesMax?: number | undefined; readonly report?: (line: string) => void } = {},
): Promise<ServiceStore> {
  const bounds = spaceBytesMax === undefined ? {} : { spaceBytesMax };
  const { folder } = place;
  const server = await serverOf(place);
  if (server === undefined) return openServiceStore({ folder, serves: true, ...bounds, report });
  const lock = await lockServiceFolder(folder);
  if (lock === undefined) {
    throw new MemoryError('unavailable', 'Another svc service runs on this folder.');
  }
  const store = marking(folder, await openServerStore(server, { ...bounds, report }));
  return {
    ...store,
    close: async () => {
      await store.close();
      lock.close();
    },
  };
}

/** After a purge no process of this folder places a block that it found before. */
function marking(folder: string, store: ServiceStore): ServiceStore {
  return withTenantsChanged(store, (own) => ({
    beginPurge: async (order) => {
      const purge = await own.beginPurge(order);
      if (!order.isDryRun) markForgotten(folder);
      return purge;
    },
  }));
}

export const serviceBackups: ServiceBackups = {
  backUp: backUpService,
  restore: restoreService,
  check: checkService,
};

/** The files around a vault: the settings that name its master keys, and new keys. */
export const serviceVaultFiles = {
  newMasterKeyId,
  makeMasterKeyFile,
  writeSettings: (folder: string, settings: ServiceSettings): Promise<void> =>
    writePrivate(folder, SETTINGS_FILE, `${JSON.stringify(settings, undefined, 2)}\n`),
};
