import { hash } from 'node:crypto';
import { batchesOf } from '../../../../src/core/bytes/batches.ts';
import { MemoryError } from '../../../../src/core/errors.ts';
import {
  type CaptureAnswer,
  type CaptureItem,
  captureRequest,
  type CaptureRequest,
  type CaptureResult,
} from '../../../../src/core/memory-api/contract.ts';
import { NEW_GENERATION } from '../../../../src/core/memory-api/words.ts';
import { newId } from '../../core/ids.ts';
import { objectOfItem } from '../../core/objects.ts';
import type {
  AnswerKey,
  AnswerState,
  BegunAnswer,
  NewObject,
  ObjectState,
  SpaceState,
  TenantStore,
} from '../../ports/service-store.ts';
import {
  type Call,
  checkSpaces,
  idempotencyKeyOf,
  type Operation,
  type OperationParts,
  readBody,
  type Reply,
  replyJson,
  StateOfCall,
} from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { LEASE_MS } from '../../core/limits.ts';
import { keepLease } from '../leases.ts';
import { staleGeneration } from './recall.ts';

/**
 * Stores records. Each is checked by its digest; if it is accepted, it is stored once and synced to disk, and later
 * calls find it. A call is stored in small transactions, so that a recall waits only briefly. A record
 * that has no result at the deadline is answered as deferred.
 */

/**
 * Bounds on the records and bytes of one transaction. A record with more bytes has a transaction of its own. 16 typed
 * prompts or one long answer take 2 to 4 ms and one disk sync.
 */
const BATCHES = {
  countMax: 16,
  sizeMax: 32_768,
  sizeOf: ({ object }: Taken) => object.bytes.length,
} as const;
const PRIORITY_FALLBACK = 5;

export const capture: Operation = async (call, parts) => {
  const asked = readBody(call, captureRequest);
  checkSpaces(call.key, [asked.space]);
  return once(call, parts, async () => {
    const answer = await take(call, asked);
    // If a record was deferred, a repeated call must still store it.
    const isWhole = answer.results.every(({ state }) => state !== 'deferred');
    return { reply: replyJson(answer), isWhole };
  });
};

/**
 * Runs `work` for a call. If the call has an Idempotency-Key, repeats the answer to an earlier call with the same key
 * and body, unless that answer was not whole.
 */
export async function once(
  { key, head, body, store, signal }: Call,
  { clock, randomBytes }: Pick<OperationParts, 'clock' | 'randomBytes'>,
  work: () => Promise<{ readonly reply: Reply; readonly isWhole: boolean }>,
): Promise<Reply> {
  const idempotencyKey = idempotencyKeyOf(head.headers);
  if (idempotencyKey === undefined) return (await work()).reply;
  const requestHash = hash('sha256', body ?? '', 'base64url');
  const holder = newId('call', randomBytes);
  const answerKey = { keyId: key.keyId, idempotencyKey };
  const asked = { store, key: answerKey, requestHash, holder, signal };
  const done = await answeredOnce(asked, async () => {
    const { reply, isWhole } = await work();
    return { result: reply, kept: isWhole ? { body: reply.body, at: clock.now() } : undefined };
  });
  return 'result' in done ? done.result : { body: done.keptBody };
}

interface Taken {
  readonly item: CaptureItem;
  readonly place: number;
  readonly object: NewObject;
}

async function take(call: Call, asked: CaptureRequest): Promise<CaptureAnswer> {
  const results: CaptureResult[] = [];
  const taken: Taken[] = [];
  for (const [place, item] of asked.items.entries()) {
    const object = objectOfItem(item, asked.session_id ?? '');
    if (typeof object !== 'string') taken.push({ item, place, object });
    else results[place] = { digest: item.digest, state: 'rejected', reason: object };
  }
  const during = new StateOfCall(call, asked.space);
  const stored = storeAll({ call, asked, during }, taken, results);
  const { state, isLate } = await stored.finally(() => during.end());
  return {
    request_id: call.requestId,
    space: asked.space,
    generation: state.generation,
    commit_seq: state.commit_seq,
    deadline_exceeded: isLate,
    results,
  };
}

/**
 * Stores the records and puts the state of each into `results`. If the space does not have the generation that the
 * caller states, it stores nothing and throws ServiceFault STALE_GENERATION. If the generation changes between two
 * transactions, it defers the remaining records.
 */
async function storeAll(
  { call, asked, during }: { call: Call; asked: CaptureRequest; during: StateOfCall },
  taken: readonly Taken[],
  results: CaptureResult[],
): Promise<{ state: SpaceState; isLate: boolean }> {
  let isBegun = false;
  for (const batch of batchesOf(byPriority(taken), BATCHES)) {
    try {
      const outcome = await call.store.capture(
        {
          space: asked.space,
          ifGeneration: asked.if_generation === NEW_GENERATION ? undefined : asked.if_generation,
          objects: batch.map(({ object }) => object),
          now: call.now,
        },
        call.signal,
      );
      const state = during.note(outcome.state);
      if (outcome.results === undefined && !isBegun) throw staleGeneration(state);
      // A purge changed the generation meanwhile, so the remaining records must not be stored.
      if (outcome.results === undefined) break;
      isBegun = true;
      for (const [index, { item, place, object }] of batch.entries()) {
        results[place] = resultOf(item, object, outcome.results[index] ?? 'quota');
      }
    } catch (error) {
      const state = during.last;
      if (!(error instanceof MemoryError) || state === undefined) throw error;
      const isLate = error.reason === 'timeout';
      if (!isLate && !isBegun) throw error;
      leaveOut(taken, results, isLate ? 'deadline' : 'store_error');
      return { state, isLate };
    }
  }
  leaveOut(taken, results, 'store_error');
  const state = during.last ?? (await call.store.spaceState(asked.space, call.signal));
  return { state, isLate: false };
}

/** Marks records without a result as deferred. If the store has one after all, the next attempt gets 'duplicate'. */
function leaveOut(
  taken: readonly Taken[],
  results: CaptureResult[],
  reason: 'deadline' | 'store_error',
): void {
  for (const { item, place } of taken) {
    results[place] ??= { digest: item.digest, state: 'deferred', reason };
  }
}

function resultOf({ digest }: CaptureItem, object: NewObject, state: ObjectState): CaptureResult {
  switch (state) {
    case 'durable':
    case 'duplicate':
      return { digest, state, ref: object.ref, bytes: object.bytes.length };
    case 'purged':
      return { digest, state: 'rejected', reason: 'forgotten' };
    case 'ref_collision':
    case 'quota':
      return { digest, state: 'rejected', reason: state };
    case 'plan':
      return { digest, state: 'rejected', reason: 'quota' };
  }
}

/** Sorts the most important records first, because the deadline may cut off the rest. */
function byPriority(taken: readonly Taken[]): readonly Taken[] {
  return taken.toSorted((a, b) => priorityOf(a) - priorityOf(b) || a.place - b.place);
}

function priorityOf({ item }: Taken): number {
  return item.priority ?? PRIORITY_FALLBACK;
}

/** Milliseconds after which a client may repeat a call that was refused because the first one still runs. */
const IN_PROGRESS_MS = 500;

export interface AskedOnce {
  readonly store: TenantStore;
  readonly key: AnswerKey;
  /** SHA-256 of the call, base64url. */
  readonly requestHash: string;
  /** Identifies the call; no two calls ever have the same holder. */
  readonly holder: string;
  readonly signal: AbortSignal;
}

export interface OnceDone<Result> {
  readonly result: Result;
  /**
   * The answer to store for a repeated call, and the time; undefined means that a repeated call does the work again.
   */
  readonly kept: { readonly body: string; readonly at: number } | undefined;
}

/**
 * Does work once for an Idempotency-Key, over all nodes. Returns the result, or the body that an earlier call stored.
 * Throws ServiceFault if a call with the key still runs, or if the earlier call had another body.
 */
export async function answeredOnce<Result>(
  asked: AskedOnce,
  work: () => Promise<OnceDone<Result>>,
): Promise<{ readonly keptBody: string } | { readonly result: Result }> {
  const { store, key, requestHash, holder } = asked;
  const begun = { holder, requestHash, ms: LEASE_MS };
  const found = await begin(asked, begun);
  if (found.state !== 'begun') {
    const known = found.state === 'kept' ? found.answer : found;
    if (known.requestHash !== requestHash) {
      const message = 'This Idempotency-Key was used for another call before.';
      throw new ServiceFault('IDEMPOTENCY_CONFLICT', message);
    }
    if (found.state === 'kept') return { keptBody: found.answer.body };
    const message = 'A call with this Idempotency-Key is still running.';
    throw new ServiceFault('IDEMPOTENCY_IN_PROGRESS', message, { afterMs: IN_PROGRESS_MS });
  }
  const stop = keepLease(() => store.beginAnswer(key, begun));
  let isKept = false;
  try {
    const { result, kept } = await work();
    if (kept !== undefined) await store.keepAnswer(key, { requestHash, ...kept });
    isKept = kept !== undefined;
    return { result };
  } finally {
    await stop();
    // If this fails, the lease expires by itself.
    if (!isKept) await store.leaveAnswer(key, holder).catch(() => undefined);
  }
}

/** Claims the key in the store. If the deadline passes first, throws MemoryError and gives the key back afterwards. */
async function begin(
  { store, key, holder, signal }: AskedOnce,
  begun: BegunAnswer,
): Promise<AnswerState> {
  const asked = store.beginAnswer(key, begun);
  const late = new Promise<'late'>((resolve) => {
    if (signal.aborted) resolve('late');
    signal.addEventListener('abort', () => resolve('late'), { once: true });
  });
  const found = await Promise.race([asked, late]);
  if (found !== 'late') return found;
  asked.then(() => store.leaveAnswer(key, holder)).catch(() => undefined);
  throw new MemoryError('timeout', 'The store did not answer in time.');
}
