import { isRecord } from '../bytes/json-fields.ts';
import { VERSION } from '../version.ts';

/**
 * Writes what svc knows of one request as JSON that a person can put into a public issue: states, sizes
 * and times. A member is in it only if it is listed here, so nothing that a row gains later is in it.
 * `row`: of the request log.
 */
export function requestReport(row: object): string {
  const miss: unknown = Reflect.get(row, 'miss');
  const missed = isRecord(miss) ? { miss: picked(miss, MISS_MEMBERS) } : {};
  return JSON.stringify({ svc: VERSION, ...picked(row, MEMBERS), ...missed }, undefined, 2);
}

function picked(row: object, members: readonly string[]): object {
  return Object.fromEntries(members.map((name) => [name, Reflect.get(row, name)]));
}

// No id, project, session, reference or time of day: those lead to a person. A tool's name may, too.
const MEMBERS = [
  'client',
  'kind',
  'dialect',
  'model',
  'status',
  'end',
  'memoryMode',
  'memoryState',
  'compressionMode',
  'continuityState',
  'originalInputTokens',
  'forwardedInputTokens',
  'recalledTokens',
  'elidedItems',
  'elidedTokens',
  'secondLooks',
  'isLogin',
  'usage',
  'lostThoughts',
  'droppedThoughts',
  'cleared',
  'prefixChangedBy',
  'cacheMs',
  'price',
  'readings',
  'isBound',
  'isForeign',
  'planLimit',
  'ms',
];
const MISS_MEMBERS = ['by', 'place', 'change', 'own', 'tokens', 'pausedMs'];
