import { readServerUrl, type ServerAddress } from '../adapters/postgres-store/server-url.ts';
import type { Environment } from '../core/settings/config-values.ts';
import type { ServiceStore } from '../ports/service-store.ts';
import { CliError } from './cli-error.ts';

/**
 * The database server of a service, where its environment names one. Its client is 85 kB that a
 * service with a file never reads.
 */

const VARIABLE = 'SVC_DATABASE_URL';

/** Undefined where the service keeps its data in a file. Throws CliError, never with the address. */
export function serverOf(environment: Environment): ServerAddress | undefined {
  const text = environment[VARIABLE];
  if (text === undefined || text === '') return undefined;
  const server = readServerUrl(text);
  if (server !== undefined) return server;
  const hint =
    'Write postgres://user:password@host:5432/name, with commas between several hosts, and ?sslmode=disable for a network of your own.';
  throw new CliError(`${VARIABLE} is not an address of PostgreSQL.`, hint);
}

export async function openServerStore(
  server: ServerAddress,
  options: { readonly spaceBytesMax?: number } = {},
): Promise<ServiceStore> {
  const { openPostgresStore } =
    await import('../adapters/postgres-store/postgres-service-store.ts');
  return openPostgresStore({ server, ...options });
}

export interface ServerMigrations {
  /** Numbers of those that are not applied yet. */
  missing(): Promise<readonly number[]>;
  /** The numbers that it applied. */
  apply(now: number): Promise<readonly number[]>;
  /** After a restore: what clients were told before counts no more. */
  beginEpoch(): Promise<void>;
  close(): Promise<void>;
}

export async function serverMigrations(environment: Environment): Promise<ServerMigrations> {
  const server = serverOf(environment);
  if (server === undefined) {
    const hint = `A service in a file brings its tables up to date by itself. For PostgreSQL set ${VARIABLE}.`;
    throw new CliError('This service is not on a database server.', hint);
  }
  const { Connections } = await import('../adapters/postgres-store/connections.ts');
  const { beginEpoch, migrate, readSchema } =
    await import('../adapters/postgres-store/migrations.ts');
  const connections = new Connections({ server });
  return {
    missing: async () => (await readSchema(connections)).missing,
    apply: (now) => migrate(connections, now),
    beginEpoch: () => beginEpoch(connections),
    close: () => connections.close(),
  };
}

/** A copy of a database server is its own business. */
export function refuseForServer(environment: Environment, hint: string): void {
  if (serverOf(environment) === undefined) return;
  throw new CliError('This service keeps its data in PostgreSQL.', hint);
}
