import { randomBytes } from 'node:crypto';
import {
  callConsole,
  type ConsoleEndpoint,
  ownUrl,
  type ServiceAddress,
} from '../adapters/network/console-client.ts';
import { serviceMasterKeys } from '../adapters/vault/master-keys.ts';
import { withVault } from '../server/signer.ts';
import { readPepper } from '../adapters/service-store/service-files.ts';
import { egressOf } from '../core/settings.ts';
import { openStoreOfService, type ServicePlace, serviceSettings } from './compose-store.ts';
import { asRecord, asText, type Fields, parseJson } from '../../../src/core/bytes/json-fields.ts';
import { isOwnMachineUrl } from '../../../src/core/settings/own-machine.ts';
import { CONSOLE_START, runConsole } from '../server/console/console.ts';
import type { ConsoleActor } from '../server/console/operation.ts';
import { ServiceFault } from '../server/fault.ts';
import { CliError } from '../../../src/cli/cli-error.ts';
import { openCatalog } from '../../../src/adapters/catalog/catalog.ts';
import { systemClock } from '../../../src/cli/compose-common.ts';
import { openLinks } from './compose-models.ts';

/** Opens the console for a command: its operations run in this process, or over HTTP in a running service. */

/** The actor of commands on this machine. A user who can open the folder may do everything. */
const PERSON: ConsoleActor = {
  type: 'cli',
  id: 'cli',
  role: 'operator',
  tenant: undefined,
  ipHash: null,
};

/** Opens the console of the service in a folder. */
export async function openLocalConsole(
  { folder, environment }: ServicePlace,
  tenant: string | undefined,
): Promise<ConsoleAccess> {
  const pepper = await readPepper(folder);
  const store = await openStoreOfService({ folder, environment });
  const masterKeys = serviceMasterKeys(folder, environment);
  // Use the cached or packaged catalog, so that no command waits for the network.
  const listCatalog = async () =>
    (await openCatalog({ folder, environment, now: Date.now })).providers();
  const sealing = withVault({ store, pepper, masterKeys, clock: systemClock, randomBytes });
  const settings = { egress: egressOf(await serviceSettings(folder)) };
  const links = openLinks(settings.egress);
  const parts = { ...sealing, receipts: undefined, listCatalog, settings, links };
  return {
    call: async ({ method, path, query = {}, body = {}, ifVersion }) => {
      const search = new URLSearchParams(query);
      const request = { method, path, query: search, tenant, body, ifVersion };
      const reply = await runConsole(parts, request, PERSON).catch((error: unknown) => {
        throw error instanceof ServiceFault ? refusalError(error.code, error.message) : error;
      });
      return asRecord(reply.body);
    },
    close: async () => {
      await links.close();
      await store.close();
    },
  };
}

/** Opens the console of a running service on this machine. */
export function openConsoleAt(
  address: ServiceAddress,
  { token, tenant }: { readonly token: string; readonly tenant: string | undefined },
): Pick<ConsoleAccess, 'call'> {
  const endpoint = { url: ownUrl(address), token, certificate: address.certificate };
  return { call: (ask) => callRemote(endpoint, ask, tenant) };
}

/** Opens the console of any service, for `--url`. Throws CliError for an address or a token that cannot be used. */
export function openRemoteConsole(
  url: string,
  { token, tenant }: { readonly token: string | undefined; readonly tenant: string | undefined },
): ConsoleAccess {
  if (!URL.canParse(url) || (new URL(url).protocol !== 'https:' && !isOwnMachineUrl(url))) {
    const hint = 'Write it as https://host; plain http is only for this machine.';
    throw new CliError('svc cannot send a token to the address of --url.', hint, 2);
  }
  if (token === undefined || token === '') throw refusalError('AUTH_MISSING', 'There is no token.');
  const endpoint = { url: new URL(url), token };
  return { call: (ask) => callRemote(endpoint, ask, tenant), close: async () => undefined };
}

async function callRemote(
  endpoint: ConsoleEndpoint,
  { method, path, query = {}, body, ifVersion }: ConsoleAsk,
  tenant: string | undefined,
): ReturnType<ConsoleAccess['call']> {
  const search = new URLSearchParams(query).toString();
  const answer = await callConsole(endpoint, {
    method,
    path: `${CONSOLE_START}${path}${search === '' ? '' : `?${search}`}`,
    tenant,
    body: body === undefined ? undefined : JSON.stringify(body),
    ifVersion,
  }).catch(() => {
    const hint = 'Check whether the service runs there, and its certificate: svc-service status';
    throw new CliError('The service at --url did not answer.', hint);
  });
  const fields = asRecord(answer.text === '' ? {} : parseJson(answer.text));
  if (answer.status >= 200 && answer.status < 300) return fields;
  const { code, message } = asRecord(fields['error']);
  if (typeof code === 'string') throw refusalError(code, asText(message));
  const hint = 'Check whether this is the address of an svc service.';
  throw new CliError(`The address of --url answered ${answer.status}.`, hint);
}

interface ConsoleAsk {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path below `/v1/svc/console/`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Sent as If-Match: the version that the change replaces. */
  readonly ifVersion?: number;
}

export interface ConsoleAccess {
  /** Throws CliError for a refusal. */
  call(ask: ConsoleAsk): Promise<Fields>;
  close(): Promise<void>;
}

/** The environment variable with the token for `--url`. On the command line, other users could read the token. */
export const TOKEN_VARIABLE = 'SVC_ADMIN_TOKEN';

/** Makes the error for an operation that the console refused. */
function refusalError(code: string, message: string): CliError {
  const hint = HINTS[code] ?? 'See the same command with --help.';
  return new CliError(`${message} (${code})`, hint, code === 'INVALID_REQUEST' ? 2 : 1);
}

const HINTS: Readonly<Record<string, string>> = {
  AUTH_MISSING: `Set ${TOKEN_VARIABLE} to the token of an admin.`,
  AUTH_INVALID: `Check the token in ${TOKEN_VARIABLE}: svc-service admins list shows the first part of each token.`,
  AUTH_REVOKED: 'Ask an operator for another token: svc-service admins create',
  AUTH_EXPIRED: 'Ask an operator for another token: svc-service admins create',
  SCOPE_DENIED: 'Ask an admin whose role allows this.',
  NOT_FOUND: 'Check with the list command, or name the tenant with --tenant.',
  CONFLICT: 'Check with the list command. Choose another name, or change the existing entry.',
  PLAN_LIMIT_REACHED: 'Remove an entry that you do not need, or ask the operator for another plan.',
  STORE_UNAVAILABLE: 'Check with: svc-service doctor',
};
