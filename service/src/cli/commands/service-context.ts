import { CliError } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { asList, asRecord, type Fields } from '../../../../src/core/bytes/json-fields.ts';
import { MemoryError } from '../../../../src/core/errors.ts';
import { serviceFolder } from '../../adapters/service-store/service-files.ts';
import type { ServiceStore } from '../../ports/service-store.ts';
import {
  type ConsoleAccess,
  openLocalConsole,
  openRemoteConsole,
  TOKEN_VARIABLE,
} from '../compose-console.ts';
import { openStoreOfService, type ServicePlace } from '../compose-store.ts';

/** Helpers that the commands of `svc-service` share. */

/** The options that most commands have. */
export interface CommonOptions {
  readonly folder?: string;
  readonly json?: boolean;
}

export function folderOf({ folder }: CommonOptions, { environment }: CommandContext): string {
  return serviceFolder(environment, folder);
}

/** Opens the store for one command, while a service may be running. */
export async function withServiceStore<Result>(
  { folder, environment }: ServicePlace,
  work: (store: ServiceStore) => Promise<Result>,
): Promise<Result> {
  const store = await openStoreOfService({ folder, environment });
  try {
    return await work(store);
  } catch (error) {
    throw storeError(error);
  } finally {
    await store.close();
  }
}

export const DOCTOR_HINT = 'Check with: svc-service doctor';

/** Converts a MemoryError to a CliError. The messages of the store's errors quote no record and no row. */
export function storeError(error: unknown): unknown {
  if (!(error instanceof MemoryError)) return error;
  return new CliError(error.message, DOCTOR_HINT);
}

export type { ConsoleAccess } from '../compose-console.ts';

export interface ConsoleOptions extends CommonOptions {
  readonly url?: string;
  readonly tenant?: string;
}

/** Opens the console for one command: of the service in the folder, or with `--url` of a service over HTTP. */
export async function withConsole<Result>(
  options: ConsoleOptions,
  context: CommandContext,
  work: (console: ConsoleAccess) => Promise<Result>,
): Promise<Result> {
  const { tenant, url } = options;
  const { environment } = context;
  const access =
    url === undefined
      ? await openLocalConsole({ folder: folderOf(options, context), environment }, tenant)
      : openRemoteConsole(url, { token: environment[TOKEN_VARIABLE], tenant });
  try {
    return await work(access);
  } catch (error) {
    throw storeError(error);
  } finally {
    await access.close();
  }
}

export async function listAll(
  console: Pick<ConsoleAccess, 'call'>,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<readonly Fields[]> {
  const found: Fields[] = [];
  for await (const page of pagesOf(console, path, query)) found.push(...page);
  return found;
}

/** Yields the pages of a list, each read when it is needed. */
export async function* pagesOf(
  console: Pick<ConsoleAccess, 'call'>,
  path: string,
  query: Readonly<Record<string, string>>,
): AsyncGenerator<readonly Fields[]> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const asked: Readonly<Record<string, string>> = after === '' ? query : { ...query, after };
    // oxlint-disable-next-line no-await-in-loop -- Each page says where the next one begins.
    const page = await console.call({ method: 'GET', path, query: asked });
    yield asList(page['data']).map(asRecord);
    after = typeof page['next_cursor'] === 'string' ? page['next_cursor'] : undefined;
  }
}
