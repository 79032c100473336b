import { backUpService, checkService, restoreService } from '../adapters/service-store/backup.ts';
import { openServiceStore } from '../adapters/service-store/sqlite-service-store.ts';
import { SETTINGS_FILE, writePrivate } from '../adapters/service-store/service-files.ts';
import { makeMasterKeyFile, newMasterKeyId } from '../adapters/vault/service-master-keys.ts';
import type { ServiceSettings } from '../core/service/settings.ts';
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

/** The files around a vault: the settings that name its master keys, and new keys. */
export const serviceVaultFiles = {
  newMasterKeyId,
  makeMasterKeyFile,
  writeSettings: (folder: string, settings: ServiceSettings): Promise<void> =>
    writePrivate(folder, SETTINGS_FILE, `${JSON.stringify(settings, undefined, 2)}\n`),
};
