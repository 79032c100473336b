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
  | 'listAudit';

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
  audit: { GET: looks('listAudit', 'viewer') },
};

export type FoundConsoleRoute =
  | { readonly route: ConsoleRoute; readonly parameter: string }
  /** The path is known, the method is not. */
  | { readonly allow: string };

/** `path`: what follows CONSOLE_START, exactly as it came. */
export function findConsoleRoute(method: string, path: string): FoundConsoleRoute | undefined {
  const [room = '', parameter, ...rest] = path.split('/');
  if (parameter !== undefined && !/^[\w-]{1,128}$/.test(parameter)) return undefined;
  const pattern = [room, ...(parameter === undefined ? [] : ['*']), ...rest].join('/');
  if (!Object.hasOwn(ROUTES, pattern)) return undefined;
  const methods = ROUTES[pattern] ?? {};
  const route = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (route === undefined) return { allow: Object.keys(methods).join(', ') };
  return { route, parameter: parameter ?? '' };
}

function looks(operation: ConsoleOperationName, role: AdminRole): ConsoleRoute {
  return { operation, role, bodyBytesMax: undefined };
}

function writes(operation: ConsoleOperationName, role: AdminRole): ConsoleRoute {
  return { operation, role, bodyBytesMax: BODY_BYTES_MAX };
}
