import { REQUEST_BYTES_MAX } from '../../../src/core/memory-api/limits.ts';
import type { KeyScope } from '../../../src/core/memory-api/keys.ts';

/** The closed table of what a memory service answers. A path that is not here does not exist. */

export type OperationName =
  | 'whoami'
  | 'recall'
  | 'capture'
  | 'retrieve'
  | 'getObject'
  | 'listItems'
  | 'deleteItem'
  | 'listSources'
  | 'createPurge'
  | 'listPurges'
  | 'getPurge'
  | 'listReceipts'
  | 'getReceipt'
  | 'listReceiptHeads';

export interface ServiceRoute {
  readonly operation: OperationName;
  /** Undefined: any valid key. */
  readonly scope: KeyScope | undefined;
  /** Bytes of the body; undefined where there is none. */
  readonly bodyBytesMax: number | undefined;
}

export type HealthPath = '/livez' | '/readyz' | '/health';

export function healthPath(path: string): HealthPath | undefined {
  return HEALTH_PATHS.find((known) => known === path);
}

const HEALTH_PATHS: readonly HealthPath[] = ['/livez', '/readyz', '/health'];

/** The public keys of receipts. */
export const KEYS_PATH = '/.well-known/svc/receipt-keys.json';

export type FoundRoute =
  | { readonly route: ServiceRoute; readonly parameter: string }
  /** The path is known, the method is not. */
  | { readonly allow: string };

const START = '/v1/svc/';
/** Calls below this count as calls of the memory. */
export const MEMORY_START = `${START}memory/`;

const { recall, capture, retrieve, purge } = REQUEST_BYTES_MAX;

const PATHS: Readonly<Record<string, Readonly<Record<string, ServiceRoute>>>> = {
  whoami: { GET: reads('whoami', undefined) },
  'memory/recall': { POST: takes('recall', 'read', recall) },
  'memory/capture': { POST: takes('capture', 'write', capture) },
  'memory/retrieve': { POST: takes('retrieve', 'read', retrieve) },
  'memory/objects/*': { GET: reads('getObject', 'read') },
  'memory/items': { GET: reads('listItems', 'read') },
  'memory/items/*': { DELETE: reads('deleteItem', 'write') },
  'memory/sources': { GET: reads('listSources', 'read') },
  'memory/purges': {
    POST: takes('createPurge', 'write', purge),
    GET: reads('listPurges', 'receipt:read'),
  },
  'memory/purges/*': { GET: reads('getPurge', 'receipt:read') },
  requests: { GET: reads('listReceipts', 'receipt:read') },
  'requests/heads': { GET: reads('listReceiptHeads', 'receipt:read') },
  'requests/*': { GET: reads('getReceipt', 'receipt:read') },
};

/** The path exactly as it came: nothing is decoded and nothing normalised. */
export function findRoute(method: string, path: string): FoundRoute | undefined {
  if (!path.startsWith(START)) return undefined;
  const name = path.slice(START.length);
  const isWhole = Object.hasOwn(PATHS, name) && !name.endsWith('*');
  const [, folder = '', part = ''] =
    /^(memory\/(?:objects|items|purges)|requests)\/([\w.-]{1,128})$/.exec(name) ?? [];
  const [pattern, parameter] = isWhole ? [name, ''] : [`${folder}/*`, part];
  if (!Object.hasOwn(PATHS, pattern)) return undefined;
  const methods = PATHS[pattern] ?? {};
  const route = Object.hasOwn(methods, method) ? methods[method] : undefined;
  return route === undefined ? { allow: Object.keys(methods).join(', ') } : { route, parameter };
}

function reads(operation: OperationName, scope: KeyScope | undefined): ServiceRoute {
  return { operation, scope, bodyBytesMax: undefined };
}

function takes(operation: OperationName, scope: KeyScope, bodyBytesMax: number): ServiceRoute {
  return { operation, scope, bodyBytesMax };
}
