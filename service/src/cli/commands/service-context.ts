import { readPepper, serviceFolder } from '../../adapters/service-store/service-files.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';
import { openStoreOfService, type ServicePlace } from '../compose-service-store.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/** The common part of the commands of `svc-service`. */

export interface FolderOption {
  readonly folder?: string;
}

export function folderOf({ folder }: FolderOption, { environment }: CommandContext): string {
  return serviceFolder(environment, folder);
}

/** For one command, beside a service that may be running. */
export async function withServiceStore<Result>(
  { folder, environment }: ServicePlace,
  work: (store: ServiceStore, pepper: Uint8Array) => Promise<Result>,
): Promise<Result> {
  const pepper = await readPepper(folder);
  const store = await openStoreOfService({ folder, environment });
  try {
    return await work(store, pepper);
  } catch (error) {
    throw storeError(error);
  } finally {
    await store.close();
  }
}

export const DOCTOR_HINT = 'Check with: svc-service doctor';

/** The error for people: the store's messages are constants. */
export function storeError(error: unknown): unknown {
  if (!(error instanceof MemoryError)) return error;
  return new CliError(error.message, DOCTOR_HINT);
}
