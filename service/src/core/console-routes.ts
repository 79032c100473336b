import type { AdminRole } from './admins.ts';

/** The closed table of console operations: who may call them, at which path, with how large a body. */

export type ConsoleOperationName =
  | 'getSession'
  | 'listTenants'
  | 'createTenant'
  | 'updateTenant'
  | 'listPlans'
  | 'createPlan'
  | 'updatePlan'
  | 'listAdmins'
  | 'createAdmin'
  | 'revokeAdmin'
  | 'listKeys'
  | 'createKey'
  | 'rotateKey'
  | 'revokeKey'
  | 'listProviders'
  | 'createProvider'
  | 'getProvider'
  | 'updateProvider'
  | 'deleteProvider'
  | 'getSettings'
  | 'updateSettings'
  | 'getUsage'
  | 'listRequests'
  | 'getRequest'
  | 'listRequestHeads'
  | 'listMemoryItems'
  | 'deleteMemoryItem'
  | 'listMemorySources'
  | 'createMemoryPurge'
  | 'listMemoryPurges'
  | 'getMemoryPurge'
  | 'getStatus'
  | 'listPresets'
  | 'fetchModels'
  | 'testProvider'
  | 'compareCredential'
  | 'listAudit'
  | 'getVault'
  | 'addMasterKey'
  | 'retireMasterKey'
  | 'rotateVault'
  | 'verifyVault'
  | 'listSigningKeys'
  | 'rotateSigningKey';

export interface ConsoleRoute {
  readonly operation: ConsoleOperationName;
  /** The least that may call it. */
  readonly role: AdminRole;
  /** Bytes of the body; undefined where there is none. */
  readonly bodyBytesMax: number | undefined;
}

export const CONSOLE_START = '/v1/svc/console/';

/** 500 models of 256 characters, written with escapes. */
const BODY_BYTES_MAX = 256 * 1024;

const ROUTES: Readonly<Record<string, Readonly<Record<string, ConsoleRoute>>>> = {
  session: { GET: looks('getSession', 'viewer') },
  tenants: { GET: looks('listTenants', 'operator'), POST: writes('createTenant', 'operator') },
  'tenants/*': { PATCH: writes('updateTenant', 'operator') },
  plans: { GET: looks('listPlans', 'operator'), POST: writes('createPlan', 'operator') },
  'plans/*': { PUT: writes('updatePlan', 'operator') },
  admins: { GET: looks('listAdmins', 'admin'), POST: writes('createAdmin', 'admin') },
  'admins/*': { DELETE: looks('revokeAdmin', 'admin') },
  keys: { GET: looks('listKeys', 'viewer'), POST: writes('createKey', 'admin') },
  'keys/*': { DELETE: looks('revokeKey', 'admin') },
  'keys/*/rotate': { POST: writes('rotateKey', 'admin') },
  providers: { GET: looks('listProviders', 'viewer'), POST: writes('createProvider', 'admin') },
  'providers/*': {
    GET: looks('getProvider', 'viewer'),
    PATCH: writes('updateProvider', 'admin'),
    DELETE: looks('deleteProvider', 'admin'),
  },
  settings: { GET: looks('getSettings', 'viewer'), PATCH: writes('updateSettings', 'admin') },
  usage: { GET: looks('getUsage', 'viewer') },
  requests: { GET: looks('listRequests', 'viewer') },
  'requests/heads': { GET: looks('listRequestHeads', 'viewer') },
  'requests/*': { GET: looks('getRequest', 'viewer') },
  'memory/items': { GET: looks('listMemoryItems', 'admin') },
  'memory/items/*': { DELETE: looks('deleteMemoryItem', 'admin') },
  'memory/sources': { GET: looks('listMemorySources', 'viewer') },
  'memory/purges': {
    GET: looks('listMemoryPurges', 'viewer'),
    POST: writes('createMemoryPurge', 'admin'),
  },
  'memory/purges/*': { GET: looks('getMemoryPurge', 'viewer') },
  status: { GET: looks('getStatus', 'operator') },
  'providers/*/models': { POST: writes('fetchModels', 'admin') },
  'providers/*/test': { POST: writes('testProvider', 'admin') },
  'providers/*/fingerprint': { POST: writes('compareCredential', 'admin') },
  presets: { GET: looks('listPresets', 'viewer') },
  audit: { GET: looks('listAudit', 'viewer') },
  vault: { GET: looks('getVault', 'operator') },
  'vault/keys': { POST: writes('addMasterKey', 'operator') },
  'vault/keys/*': { DELETE: looks('retireMasterKey', 'operator') },
  'vault/rotate': { POST: writes('rotateVault', 'operator') },
  'vault/verify': { POST: writes('verifyVault', 'operator') },
  signing: { GET: looks('listSigningKeys', 'operator') },
  'signing/rotate': { POST: writes('rotateSigningKey', 'operator') },
};

export type FoundConsoleRoute =
  | { readonly route: ConsoleRoute; readonly parameter: string }
  /** The path is known, the method is not. */
  | { readonly allow: string };

/** `path`: what follows CONSOLE_START, exactly as it came. */
export function findConsoleRoute(method: string, path: string): FoundConsoleRoute | undefined {
  if (Object.hasOwn(ROUTES, path) && !path.includes('*')) return routeIn(path, method, '');
  const parts = path.split('/');
  // Every parameter is the second or the third part of its path.
  for (const place of [1, 2]) {
    const parameter = parts[place] ?? '';
    const pattern = parts.with(Math.min(place, parts.length - 1), '*').join('/');
    const isKnown = Object.hasOwn(ROUTES, pattern) && /^[\w.-]{1,128}$/.test(parameter);
    if (isKnown) return routeIn(pattern, method, parameter);
  }
  return undefined;
}

function routeIn(pattern: string, method: string, parameter: string): FoundConsoleRoute {
  const methods = ROUTES[pattern] ?? {};
  const route = Object.hasOwn(methods, method) ? methods[method] : undefined;
  return route === undefined ? { allow: Object.keys(methods).join(', ') } : { route, parameter };
}

function looks(operation: ConsoleOperationName, role: AdminRole): ConsoleRoute {
  return { operation, role, bodyBytesMax: undefined };
}

function writes(operation: ConsoleOperationName, role: AdminRole): ConsoleRoute {
  return { operation, role, bodyBytesMax: BODY_BYTES_MAX };
}
