import {
  readPepper,
  readPrivate,
  serviceFolder,
  SETTINGS_FILE,
} from '../../adapters/service-store/service-files.ts';
import { parseServiceSettings, type ServiceSettings } from '../../core/service/settings.ts';
import { MemoryError } from '../../ports/memory.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import { CliError } from '../cli-error.ts';
import { openStoreOfService, type ServicePlace } from '../compose-service-store.ts';
import type { CommandContext } from '../context.ts';

/** The common part of the commands of `svc service`. */

export interface FolderOption {
  readonly folder?: string;
}

export function folderOf({ folder }: FolderOption, { environment }: CommandContext): string {
  return serviceFolder(environment, folder);
}

/** The settings with flags over them. Throws CliError. */
export async function serviceSettings(
  folder: string,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ServiceSettings> {
  const text = await readPrivate(folder, SETTINGS_FILE);
  if (text === undefined) {
    throw new CliError(`There is no service in ${folder}.`, 'Make one: svc service init');
  }
  const { settings, problems } = parseServiceSettings({ ...jsonOf(text, folder), ...flags });
  if (settings !== undefined) return settings;
  const file = `${folder}/${SETTINGS_FILE}`;
  throw new CliError(
    problems.map((problem) => `${SETTINGS_FILE}: ${problem}.`),
    `Correct ${file}, or the flags of this command.`,
  );
}

function jsonOf(text: string, folder: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Said below, without a piece of the file.
  }
  throw new CliError(`${folder}/${SETTINGS_FILE} is not JSON.`, 'Correct it, or make a new one.');
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

/** The error for people: the store's messages are constants. */
export function storeError(error: unknown): unknown {
  if (!(error instanceof MemoryError)) return error;
  return new CliError(error.message, 'Look with: svc service doctor');
}
