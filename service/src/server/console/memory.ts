import { Buffer } from 'node:buffer';
import { parseJson } from '../../../../src/core/bytes/json-fields.ts';
import { closedPurgeRequest } from '../../../../src/core/memory-api/purge-contract.ts';
import { type Call, type Operation, readBody } from '../call.ts';
import { listItems, listPurges, listSources } from '../operations/lists.ts';
import { createPurge, deleteItem, getPurge } from '../operations/purges.ts';
import { type ConsoleCall, type ConsoleReply, findTenant, storeOf } from './console-call.ts';

/**
 * The memory of a tenant, for its admins: the operations of its keys, without a key. An admin reaches
 * every space of the tenant.
 */

export const listMemoryItems = asKey(listItems);
export const deleteMemoryItem = asKey(deleteItem);
export const listMemorySources = asKey(listSources);
export const createMemoryPurge = asKey((call, service) => {
  readBody(call, closedPurgeRequest);
  return createPurge(call, service);
});
export const listMemoryPurges = asKey(listPurges);
export const getMemoryPurge = asKey(getPurge);

/** Erasing a large space continues after this deadline, at the next start. */
const CALL_MS = 60_000;

function asKey(operation: Operation): (call: ConsoleCall) => Promise<ConsoleReply> {
  return async (call) => {
    await findTenant(call);
    const { parts } = call;
    const settings = { ...parts.settings, requestsPerMinute: null, isBehindProxy: false };
    const state = { parts: { ...parts, settings } };
    const { status, body } = await operation(memoryCall(call), state);
    return { status: status === 204 ? 204 : 200, body: parseJson(body) };
  };
}

function memoryCall(call: ConsoleCall): Call {
  const { actor, tenantId, query, parameter, body, now, method, path } = call;
  return {
    requestId: '',
    key: {
      tenant: tenantId,
      keyId: actor.id,
      name: actor.type,
      hash: '',
      scopes: ['read', 'write', 'receipt:read'],
      createdAt: 0,
    },
    actor: { type: actor.type, id: actor.id, ip_hash: actor.ipHash },
    store: storeOf(call),
    head: { method, path, query, headers: [] },
    parameter,
    body: Buffer.from(JSON.stringify(body ?? {}), 'utf8'),
    signal: AbortSignal.timeout(CALL_MS),
    deadlineAt: now + CALL_MS,
    now,
  };
}
