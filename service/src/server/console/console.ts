import { includesRole } from '../../core/admins.ts';
import { DEFAULT_TENANT, isTenantId } from '../../core/tenants.ts';
import { invalid, ServiceFault } from '../fault.ts';
import { METHODS, RouteTable } from '../routes.ts';
import { accountOperations, requestOperations } from './account.ts';
import { adminOperations } from './admins.ts';
import { keyOperations } from './keys.ts';
import { memoryOperations } from './memory.ts';
import type {
  ConsoleActor,
  ConsoleOperation,
  ConsoleParts,
  ConsoleReply,
  ConsoleRequest,
} from './operation.ts';
import { probeOperations } from './provider-probes.ts';
import { providerOperations } from './providers.ts';
import { tenantOperations } from './tenants.ts';
import { vaultOperations } from './vault.ts';

/**
 * The console: the operations that manage a service, in one table. The HTTP API and the command line both use the
 * table, so they follow the same rules, and every change has its audit event.
 */

/** All operations, in the order of the command line's help. */
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

/** Bound on a body, in bytes: twice as much as 500 names of models with 256 characters need. */
const BODY_BYTES_MAX = 256 * 1024;

/** The operations by path and method, sorted by method, because the header Allow lists methods in this order. */
export const CONSOLE_ROUTES = new RouteTable(
  OPERATIONS.toSorted((a, b) => METHODS.indexOf(a.method) - METHODS.indexOf(b.method)),
);

export interface AdmittedRoute {
  readonly operation: ConsoleOperation;
  readonly parameter: string;
  /** Bound on the body; undefined if the call has none. */
  readonly bodyBytesMax: number | undefined;
}

/** Finds the route of a call if the actor may use it. Throws ServiceFault. */
export function admitRoute(
  { method, path }: Pick<ConsoleRequest, 'method' | 'path'>,
  actor: ConsoleActor,
): AdmittedRoute {
  const { row: operation, parameter } = CONSOLE_ROUTES.mustFind(method, path);
  const { role, body } = operation;
  const bodyBytesMax = body === undefined ? undefined : BODY_BYTES_MAX;
  if (includesRole(actor.role, role)) return { operation, parameter, bodyBytesMax };
  throw new ServiceFault('SCOPE_DENIED', `The operation needs the role ${role}.`);
}

/** Runs an operation of the console. Throws ServiceFault and MemoryError. */
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

/** Returns the tenant of a call. An actor with a tenant gets NOT_FOUND for every other tenant. */
function tenantOf(named: string | undefined, { tenant }: ConsoleActor): string {
  if (named !== undefined && !isTenantId(named)) {
    throw invalid('This is not the id of a tenant.', 'tenant');
  }
  if (tenant === undefined) return named ?? DEFAULT_TENANT;
  if (named === undefined || named === tenant) return tenant;
  throw new ServiceFault('NOT_FOUND', 'There is no such tenant.');
}
