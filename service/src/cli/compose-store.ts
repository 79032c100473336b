import { markForgotten } from '../../../src/adapters/files/marks.ts';
import { CliError } from '../../../src/cli/cli-error.ts';
import { MemoryError } from '../../../src/core/errors.ts';
import type { Environment } from '../../../src/core/settings/config-values.ts';
import { readServerUrl, type ServerAddress } from '../adapters/postgres-store/server-url.ts';
import { lockServiceFolder } from '../adapters/service-store/database.ts';
import {
  readPrivate,
  SETTINGS_FILE,
  writePrivate,
} from '../adapters/service-store/service-files.ts';
import { openServiceStore } from '../adapters/service-store/sqlite-service-store.ts';
import { readSecret } from '../adapters/vault/master-keys.ts';
import { parseServiceSettings, type ServiceSettings } from '../core/settings.ts';
import type { ServerFacts, ServiceStore } from '../ports/service-store.ts';
import { withTenantsChanged } from '../server/change-watch.ts';

/**
 * Opens a service's store: a file, or PostgreSQL. Finds the addresses of PostgreSQL and Redis, in the environment or
 * else in service.json. The code for PostgreSQL is imported only if it is used.
 */

/** A service's folder, with the environment and the settings that may name a database server. */
export interface ServicePlace {
  readonly folder: string;
  readonly environment: Environment;
  /** The service's settings; undefined: read them from the folder. */
  readonly settings?: ServiceSettings;
}

export interface DatabaseServer {
  readonly address: ServerAddress;
  readonly trustsFailover: boolean;
  readonly migrates: boolean;
}

interface Server {
  /** The member of the settings with the address. */
  readonly member: 'database' | 'redis';
  /** The environment variable with the address. */
  readonly variable: string;
  readonly kind: string;
  readonly hint: string;
}

const DATABASE: Server = {
  member: 'database',
  variable: 'SVC_DATABASE_URL',
  kind: 'PostgreSQL',
  hint: 'Write postgres://user:password@host:5432/name, and ?sslmode=disable for a private network. For several servers, name the proxy or the endpoint that leads to the one that writes.',
};
const REDIS: Server = {
  member: 'redis',
  variable: 'SVC_REDIS_URL',
  kind: 'Redis',
  hint: 'Write redis://host:6379 or, with TLS, rediss://user:password@host:6379.',
};

/**
 * Returns the database server; undefined if the service keeps its data in a file. Throws CliError and FileError, whose
 * messages never contain the address.
 */
export async function serverOf(place: ServicePlace): Promise<DatabaseServer | undefined> {
  const { settings, address, origin } = await addressOf(place, DATABASE);
  if (address === '') return undefined;
  const server = readServerUrl(address);
  if (server === undefined) throw wrongAddress(DATABASE, origin);
  const { trustFailover = false, autoMigrate = false } = settings?.database ?? {};
  return { address: server, trustsFailover: trustFailover, migrates: autoMigrate };
}

/** Returns the address of Redis; undefined if none is set. Throws CliError and FileError, which never contain it. */
export async function redisUrlOf(place: ServicePlace): Promise<string | undefined> {
  const { address, origin } = await addressOf(place, REDIS);
  if (address === '') return undefined;
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url !== undefined && /^rediss?:$/.test(url.protocol) && url.hostname !== '') return address;
  throw wrongAddress(REDIS, origin);
}

async function addressOf(place: ServicePlace, { member, variable, kind, hint }: Server) {
  const settings = place.settings ?? (await settingsIn(place.folder));
  const given = place.environment[variable] ?? '';
  if (given !== '') return { settings, address: given, origin: variable };
  const { url = '', from } = settings?.[member] ?? {};
  if (from === undefined)
    return { settings, address: url, origin: `${member}.url in service.json` };
  const name = `The address of ${kind}`;
  const address = (await readSecret({ from, name, hint }, place.environment)).trim();
  return { settings, address, origin: `${member}.from in service.json` };
}

function wrongAddress({ kind, hint }: Server, origin: string): CliError {
  return new CliError(`${origin} is not an address of ${kind}.`, hint);
}

interface ServerStoreOptions {
  readonly spaceBytesMax?: number | undefined;
  readonly report?: (line: string) => void;
}

export async function openServerStore(
  { address, trustsFailover, migrates }: DatabaseServer,
  options: { readonly spaceBytesMax?: number; readonly report?: (line: string) => void } = {},
): Promise<ServiceStore> {
  const { openPostgresStore } =
    await import('../adapters/postgres-store/postgres-service-store.ts');
  return openPostgresStore({ server: address, trustsFailover, migrates, ...options });
}

/** Describes the database server. Throws MemoryError if it does not answer. */
export async function inspectDatabase({ address }: DatabaseServer): Promise<ServerFacts> {
  const { inspectServer } = await import('../adapters/postgres-store/postgres-service-store.ts');
  return inspectServer(address);
}

/** Returns the database server. Throws CliError if the service keeps its data in a file. */
export async function mustHaveServer(place: ServicePlace): Promise<DatabaseServer> {
  const server = await serverOf(place);
  if (server !== undefined) return server;
  const hint = `A service in a file makes its tables by itself. For PostgreSQL set ${DATABASE.variable}, or "database" in service.json.`;
  throw new CliError('This service does not use a database server.', hint);
}

/** Throws CliError if the data are in PostgreSQL, for commands on a file. */
export async function refuseForServer(place: ServicePlace, hint: string): Promise<void> {
  if ((await serverOf(place)) === undefined) return;
  throw new CliError('This service keeps its data in PostgreSQL.', hint);
}

/**
 * Opens the store for one command, while a service may be running. `creates`: makes a missing file, under the folder's
 * lock. Throws MemoryError, CliError or FileError.
 */
export async function openStoreOfService(
  place: ServicePlace,
  { creates = false }: { readonly creates?: boolean } = {},
): Promise<ServiceStore> {
  const { folder } = place;
  const server = await serverOf(place);
  if (server !== undefined) return marking(folder, await openServerStore(server));
  const own = creates ? { serves: true, creates: true } : {};
  return marking(folder, openServiceStore({ folder, ...own, report: () => undefined }));
}

/** Opens the store for a process that serves. The process holds the folder's lock until the store is closed. */
export async function openServingStore(
  place: ServicePlace,
  { spaceBytesMax, report = () => undefined }: ServerStoreOptions = {},
): Promise<ServiceStore> {
  const bounds = spaceBytesMax === undefined ? {} : { spaceBytesMax };
  const { folder } = place;
  const server = await serverOf(place);
  if (server === undefined) {
    return marking(folder, openServiceStore({ folder, serves: true, ...bounds, report }));
  }
  let lock = lockServiceFolder(folder);
  if (lock === undefined) {
    throw new MemoryError('unavailable', 'Another svc service runs on this folder.');
  }
  const store = marking(folder, await openServerStore(server, { ...bounds, report }));
  return {
    ...store,
    close: async () => {
      await store.close();
      // close() may be called twice.
      lock?.close();
      lock = undefined;
    },
  };
}

/**
 * Lets each purge that is no dry run set a mark in the folder. Every process of the folder then drops its cached
 * blocks.
 */
function marking(folder: string, store: ServiceStore): ServiceStore {
  return withTenantsChanged(store, (own) => ({
    beginPurge: async (order) => {
      const purge = await own.beginPurge(order);
      if (!order.isDryRun) markForgotten(folder);
      return purge;
    },
    continuePurge: async (...given) => {
      const isDone = await own.continuePurge(...given);
      markForgotten(folder);
      return isDone;
    },
  }));
}

// Re-exported, so that commands need not know which adapters have these functions.
export { backUpService, checkService, restoreService } from '../adapters/service-store/backup.ts';
export { lockServiceFolder } from '../adapters/service-store/database.ts';

export function writeSettings(folder: string, settings: ServiceSettings): Promise<void> {
  return writePrivate(folder, SETTINGS_FILE, `${JSON.stringify(settings, undefined, 2)}\n`);
}

/** Returns the settings of the folder, in which `flags` replace members. Throws CliError if there is no service. */
export async function serviceSettings(
  folder: string,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ServiceSettings> {
  const settings = await settingsIn(folder, flags);
  if (settings !== undefined) return settings;
  throw new CliError(`There is no service in ${folder}.`, 'Create one: svc-service init');
}

/**
 * Reads the settings; undefined if there is no service yet. Throws CliError for invalid settings. The message repeats
 * none of their values, because an address may contain a password.
 */
export async function settingsIn(
  folder: string,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ServiceSettings | undefined> {
  const text = await readPrivate(folder, SETTINGS_FILE);
  if (text === undefined) return undefined;
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
    // The parser's error would quote the file.
  }
  throw new CliError(
    `${folder}/${SETTINGS_FILE} is not JSON.`,
    'Correct it, or create a new service.',
  );
}
