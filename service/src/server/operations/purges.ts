import { setTimeout as sleep } from 'node:timers/promises';
import { purgeRequest, type PurgeScope } from '../../../../src/core/memory-api/contract.ts';
import { space as spaceShape } from '../../../../src/core/memory-api/words.ts';
import { mayUse } from '../../../../src/core/memory-api/keys.ts';
import { newId } from '../../core/ids.ts';
import type { AuditKind } from '../../core/audit.ts';
import {
  type Call,
  checkSpaces,
  type Operation,
  type OperationParts,
  readBody,
  readValue,
  type Reply,
  replyJson,
} from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { erase } from '../jobs.ts';
import { once } from './capture.ts';

/** The pause between two attempts to erase. The store cannot erase, for example, while a backup reads its file. */
const RETRY_MS = 100;
/**
 * How long a call tries again to erase records while the store or another process prevents it. After that the jobs
 * finish the purge. An attempt that erases records is not interrupted.
 */
const ANSWER_MS = 5000;

export const createPurge: Operation = async (call, parts) => {
  const { space, scope, dry_run: isDryRun = false } = readBody(call, purgeRequest);
  checkSpaces(call.key, [space]);
  const order = { kind: 'memory.purge_requested', space, scope, isDryRun } as const;
  return once(call, parts, async () => ({ reply: await purge(call, parts, order), isWhole: true }));
};

export const deleteItem: Operation = async (call, parts) => {
  const space = readValue(call.head.query.get('space'), spaceShape);
  checkSpaces(call.key, [space]);
  const asked = { space, itemId: call.parameter };
  const digest = await call.store.findItem(asked, call.signal);
  if (digest === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such item.');
  const scope = { digests: [digest] };
  return purge(call, parts, { kind: 'memory.item_deleted', space, scope, isDryRun: false });
};

export const getPurge: Operation = async (call, { signer }) => {
  const found = await call.store.findPurge(call.parameter, call.signal);
  if (found === undefined || !mayUse(call.key, found.space)) {
    throw new ServiceFault('NOT_FOUND', 'There is no such purge.');
  }
  return replyJson(await signer.sign(found));
};

interface Order {
  readonly kind: Extract<AuditKind, `memory.${string}`>;
  readonly space: string;
  readonly scope: PurgeScope;
  readonly isDryRun: boolean;
}

/**
 * Erases the records of an order, or counts them, and answers with the receipt, signed if the service has a signing
 * key.
 */
async function purge(call: Call, parts: OperationParts, order: Order): Promise<Reply> {
  const { kind, ...given } = order;
  const purgeId = newId('prg', parts.randomBytes);
  const begun = await call.store.beginPurge({
    ...given,
    purgeId,
    requestedBy: call.key.keyId,
    now: call.now,
    note: {
      event_id: newId('evt', parts.randomBytes),
      at: call.now,
      kind,
      actor: call.actor ?? { type: 'key', id: call.key.keyId, ip_hash: null },
      target: { type: 'purge', id: purgeId },
      details: { space: order.space, scope: Object.keys(order.scope).join(' ') },
    },
  });
  if (!order.isDryRun) await waitUntilErased(call, parts, purgeId);
  // Erasing may have taken longer than the call's deadline. The purge's result is read all the same.
  const patience = AbortSignal.timeout(ANSWER_MS);
  const done = order.isDryRun ? begun : await call.store.findPurge(purgeId, patience);
  return replyJson(await parts.signer.sign(done ?? begun));
}

async function waitUntilErased(
  { store }: Call,
  { clock, randomBytes }: OperationParts,
  purgeId: string,
): Promise<void> {
  const until = clock.monotonic() + ANSWER_MS;
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- Tries again until all is erased.
    const erasedAt = await erase({ store, clock, randomBytes }, purgeId);
    if (erasedAt !== undefined || clock.monotonic() > until) return;
    // oxlint-disable-next-line no-await-in-loop
    await sleep(RETRY_MS);
  }
}
