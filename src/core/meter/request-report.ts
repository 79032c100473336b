import { isRecord } from '../bytes/json-fields.ts';
import { VERSION } from '../version.ts';

/**
 * Writes some facts about one request as JSON that a user can attach to a public issue: states, sizes and times.
 * Only listed members are written, so that a new member of the row is never published by accident. `row`: a row of
 * the request log.
 */
export function requestReport(row: object): string {
  const miss: unknown = Reflect.get(row, 'miss');
  const missed = isRecord(miss) ? { miss: picked(miss, MISS_MEMBERS) } : {};
  return JSON.stringify({ svc: VERSION, ...picked(row, MEMBERS), ...missed }, undefined, 2);
}

function picked(row: object, members: readonly string[]): object {
  return Object.fromEntries(members.map((name) => [name, Reflect.get(row, name)]));
}

// Members of the report. None of them is an id, a project, a session, a reference, the time of the request or a tool
// name: each of these could identify a person. `planLimit` has the time at which a window of the plan resets.
const MEMBERS = (
  'client kind dialect model status end memoryMode memoryState compressionMode continuityState ' +
  'originalInputTokens forwardedInputTokens recalledTokens elidedItems elidedTokens secondLooks isLogin usage ' +
  'lostThoughts droppedThoughts cleared prefixChangedBy cacheMs price readings isBound isForeign planLimit ms'
).split(' ');
const MISS_MEMBERS = ['by', 'place', 'change', 'own', 'tokens', 'pausedMs'];
