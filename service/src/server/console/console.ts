import { includesRole } from '../../core/admins.ts';
import { DEFAULT_TENANT, isTenantId } from '../../core/tenants.ts';
import { ServiceFault } from '../fault.ts';
import { accountOperations, requestOperations } from './account.ts';
import { adminOperations } from './admins.ts';
import { keyOperations } from './keys.ts';
import { memoryOperations } from './memory.ts';
import {
  type ConsoleActor,
  type ConsoleOperation,
  type ConsoleParts,
  type ConsoleReply,
  type ConsoleRequest,
  METHODS,
} from './operation.ts';
import { probeOperations } from './provider-probes.ts';
import { providerOperations } from './providers.ts';
import { tenantOperations } from './tenants.ts';
import { vaultOperations } from './vault.ts';

/**
 * The operations of the console, in one table. The HTTP API and the command line both come through here,
 * so there is one set of rules, and nothing changes without its audit event.
 */

/** In the order of the command line's help. */
export const OPERATIONS: readonly ConsoleOperation[] = [
  ...keyOperations,
  ...providerOperations,
  ...probeOperations,
  ...tenantOperations,
  ...adminOperations,
  ...vaultOperations,
  ...accountOperations,
  ...memoryOperations,
  ...requestOperations,
];

export const CONSOLE_START = '/v1/svc/console/';

/** 500 models of 256 characters, written with escapes. */
const BODY_BYTES_MAX = 256 * 1024;

const PATTERNS = new Map(
  OPERATIONS.map(({ path }) => [
    path,
    new RegExp(`^${path.replace('*', String.raw`([\w.-]{1,128})`)}$`),
  ]),
);

export type FoundConsoleRoute =
  | { readonly operation: ConsoleOperation; readonly parameter: string }
  /** The path is known, the method is not. */
  | { readonly allow: string };

/** `path`: what follows CONSOLE_START, exactly as it came. */
export function findConsoleRoute(method: string, path: string): FoundConsoleRoute | undefined {
  // A path that a row names comes before one that it matches: `requests/heads`.
  const isNamed = PATTERNS.has(path) && !path.includes('*');
  const known = isNamed ? path : [...PATTERNS].find(([, pattern]) => pattern.test(path))?.[0];
  if (known === undefined) return undefined;
  const rows = OPERATIONS.filter((row) => row.path === known);
  const operation = rows.find((row) => row.method === method);
  const parameter = PATTERNS.get(known)?.exec(path)?.[1] ?? '';
  if (operation !== undefined) return { operation, parameter };
  const allowed = METHODS.filter((one) => rows.some((row) => row.method === one));
  return { allow: allowed.join(', ') };
}

export interface AdmittedRoute {
  readonly operation: ConsoleOperation;
  readonly parameter: string;
  /** Undefined: the call has no body. */
  readonly bodyBytesMax: number | undefined;
}

/** The route of a call, once the actor may use it. Throws ServiceFault. */
export function admitRoute(
  { method, path }: Pick<ConsoleRequest, 'method' | 'path'>,
  actor: ConsoleActor,
): AdmittedRoute {
  const found = findConsoleRoute(method, path);
  if (found === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such path.');
  if ('allow' in found) {
    const { allow } = found;
    throw new ServiceFault('METHOD_NOT_ALLOWED', 'This path does not support this method.', {
      allow,
    });
  }
  const { role, body } = found.operation;
  const bodyBytesMax = body === undefined ? undefined : BODY_BYTES_MAX;
  if (includesRole(actor.role, role)) return { ...found, bodyBytesMax };
  throw new ServiceFault('SCOPE_DENIED', `The operation needs the role ${role}.`);
}

/** Throws ServiceFault and MemoryError. */
export async function runConsole(
  parts: ConsoleParts,
  request: ConsoleRequest,
  actor: ConsoleActor,
): Promise<ConsoleReply> {
  const { operation, parameter } = admitRoute(request, actor);
  const tenantId = tenantOf(request.tenant, actor);
  const now = parts.clock.now();
  return operation.run({ ...request, actor, parts, parameter, tenantId, now });
}

/** For anyone but an operator, no tenant exists beside their own. */
function tenantOf(named: string | undefined, { tenant }: ConsoleActor): string {
  if (named !== undefined && !isTenantId(named)) {
    throw new ServiceFault('INVALID_REQUEST', 'This is not the id of a tenant.', {
      param: 'tenant',
    });
  }
  if (tenant === undefined) return named ?? DEFAULT_TENANT;
  if (named === undefined || named === tenant) return tenant;
  throw new ServiceFault('NOT_FOUND', 'There is no such tenant.');
}
