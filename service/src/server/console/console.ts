import { includesRole } from '../../core/admins.ts';
import {
  type ConsoleOperationName,
  type ConsoleRoute,
  findConsoleRoute,
} from '../../core/console-routes.ts';
import { DEFAULT_TENANT, isTenantId } from '../../core/tenants.ts';
import { ServiceFault } from '../fault.ts';
import { getSettings, getUsage, updateSettings } from './account.ts';
import { createAdmin, getSession, listAdmins, revokeAdmin } from './admins.ts';
import { listAudit } from './audit.ts';
import type {
  ConsoleActor,
  ConsoleOperation,
  ConsoleParts,
  ConsoleReply,
  ConsoleRequest,
} from './console-call.ts';
import { createKey, listKeys, revokeKey, rotateKey } from './keys.ts';
import {
  createMemoryPurge,
  deleteMemoryItem,
  getMemoryPurge,
  listMemoryItems,
  listMemoryPurges,
  listMemorySources,
} from './memory.ts';
import {
  createProvider,
  deleteProvider,
  getProvider,
  listProviders,
  updateProvider,
} from './providers.ts';
import { getRequest, listRequestHeads, listRequests } from './requests.ts';
import { getStatus } from './status.ts';
import { compareCredential, fetchModels, listPresets, testProvider } from './provider-probes.ts';
import {
  createPlan,
  createTenant,
  listPlans,
  listTenants,
  updatePlan,
  updateTenant,
} from './tenants.ts';

import {
  addMasterKey,
  getVault,
  listSigningKeys,
  retireMasterKey,
  rotateSigningKey,
  rotateVault,
  verifyVault,
} from './vault.ts';

/**
 * The operations of the console. The HTTP API and the command line both come through here, so there
 * is one set of rules, and nothing changes without its audit event.
 */

const OPERATIONS: Readonly<Record<ConsoleOperationName, ConsoleOperation>> = {
  getSession,
  listTenants,
  createTenant,
  updateTenant,
  listPlans,
  createPlan,
  updatePlan,
  listAdmins,
  createAdmin,
  revokeAdmin,
  listKeys,
  createKey,
  rotateKey,
  revokeKey,
  listProviders,
  createProvider,
  getProvider,
  updateProvider,
  deleteProvider,
  getSettings,
  updateSettings,
  getUsage,
  listRequests,
  getRequest,
  listRequestHeads,
  listMemoryItems,
  deleteMemoryItem,
  listMemorySources,
  createMemoryPurge,
  listMemoryPurges,
  getMemoryPurge,
  getStatus,
  listPresets,
  fetchModels,
  testProvider,
  compareCredential,
  listAudit,
  getVault,
  addMasterKey,
  retireMasterKey,
  rotateVault,
  verifyVault,
  listSigningKeys,
  rotateSigningKey,
};

export interface AdmittedRoute {
  readonly route: ConsoleRoute;
  readonly parameter: string;
}

/** The route of a call, once the actor may use it. Throws ServiceFault. */
export function admitRoute(
  { method, path }: Pick<ConsoleRequest, 'method' | 'path'>,
  actor: ConsoleActor,
): AdmittedRoute {
  const found = findConsoleRoute(method, path);
  if (found === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such path.');
  if (!('route' in found)) {
    const { allow } = found;
    throw new ServiceFault('METHOD_NOT_ALLOWED', 'This path does not support this method.', {
      allow,
    });
  }
  const { role } = found.route;
  if (includesRole(actor.role, role)) return found;
  throw new ServiceFault('SCOPE_DENIED', `The operation needs the role ${role}.`);
}

/** Throws ServiceFault and MemoryError. */
export async function runConsole(
  parts: ConsoleParts,
  request: ConsoleRequest,
  actor: ConsoleActor,
): Promise<ConsoleReply> {
  const { route, parameter } = admitRoute(request, actor);
  const tenantId = tenantOf(request.tenant, actor);
  const now = parts.clock.now();
  return OPERATIONS[route.operation]({ ...request, actor, parts, parameter, tenantId, now });
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
