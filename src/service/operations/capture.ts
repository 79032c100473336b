import { createHash } from 'node:crypto';
import {
  type CaptureAnswer,
  type CaptureItem,
  type CaptureRequest,
  captureRequest,
  type CaptureResult,
} from '../../core/memory-api/contract.ts';
import { NEW_GENERATION } from '../../core/memory-api/words.ts';
import {
  type ContentRecord,
  recordBytes,
  RECORD_BYTES_MAX,
  textOfRecord,
} from '../../core/memory-api/records.ts';
import { contentDigest, contentReference, textDigest } from '../../core/memory/reference.ts';
import { RECORD_CHARS_MAX } from '../../core/memory/record.ts';
import { MemoryError } from '../../ports/memory.ts';
import type { NewObject, ObjectState, SpaceState, SpokenText } from '../../ports/service-store.ts';
import {
  type Call,
  checkSpaces,
  type Operation,
  readBody,
  type Reply,
  replyJson,
  type ServiceState,
} from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { idempotencyKeyOf } from '../gate.ts';
import { staleGeneration } from './recall.ts';

/**
 * Records come in: each is checked by its own digest, stored once, synced, and searched from the
 * next recall on. In small transactions, so that a recall waits for one at most, and so that a
 * deadline leaves whole items undone and none half done.
 */

/** A transaction: 16 typed prompts or one long answer take 2 to 4 ms and the disk's sync. */
const BATCH_ITEMS_MAX = 16;
const BATCH_BYTES_MAX = 32_768;
const PRIORITY_FALLBACK = 5;
const IN_PROGRESS_MS = 500;

export const capture: Operation = async (call, service) => {
  const asked = readBody(call, captureRequest);
  checkSpaces(call.key, [asked.space]);
  const idempotencyKey = idempotencyKeyOf(call.head.headers);
  if (idempotencyKey === undefined) {
    return replyJson(await take(call, service, asked));
  }
  return once({ call, service, idempotencyKey }, () => take(call, service, asked));
};

/** The same key and body give the first answer again; the same key and another body are refused. */
async function once(
  { call, service, idempotencyKey }: { call: Call; service: ServiceState; idempotencyKey: string },
  work: () => Promise<CaptureAnswer>,
): Promise<Reply> {
  const { running, parts } = service;
  const asked = { keyId: call.key.keyId, idempotencyKey };
  const requestHash = createHash('sha256')
    .update(call.body ?? '')
    .digest('base64url');
  const name = `${asked.keyId} ${idempotencyKey}`;
  const hash = running.get(name);
  if (hash !== undefined) {
    if (hash !== requestHash) throw conflict();
    const message = 'A call with this Idempotency-Key is still running.';
    throw new ServiceFault('IDEMPOTENCY_IN_PROGRESS', message, { afterMs: IN_PROGRESS_MS });
  }
  running.set(name, requestHash);
  try {
    const kept = await call.store.findAnswer(asked, call.signal);
    if (kept !== undefined && kept.requestHash !== requestHash) throw conflict();
    if (kept !== undefined) return { body: kept.body };
    const answer = await work();
    const reply = replyJson(answer);
    // Deferred records must be stored when the same call comes again.
    const isWhole = answer.results.every(({ state }) => state !== 'deferred');
    if (isWhole) {
      const at = parts.clock.now();
      await call.store.keepAnswer(asked, { requestHash, body: reply.body, at });
    }
    return reply;
  } finally {
    running.delete(name);
  }
}

function conflict(): ServiceFault {
  const message = 'This Idempotency-Key came with another body before.';
  return new ServiceFault('IDEMPOTENCY_CONFLICT', message);
}

interface Taken {
  readonly item: CaptureItem;
  readonly place: number;
  readonly object: NewObject;
}

async function take(
  call: Call,
  service: ServiceState,
  asked: CaptureRequest,
): Promise<CaptureAnswer> {
  const results: CaptureResult[] = [];
  const taken: Taken[] = [];
  for (const [place, item] of asked.items.entries()) {
    const object = objectOf(item, asked.session_id ?? '');
    if (typeof object === 'string') results[place] = refused(item, object);
    else taken.push({ item, place, object });
  }
  const { state, isLate } = await store({ call, service, asked }, taken, results);
  return {
    request_id: call.requestId,
    space: asked.space,
    generation: state.generation,
    commit_seq: state.commitSeq,
    deadline_exceeded: isLate,
    results,
  };
}

/** Fills `results`; throws STALE_GENERATION when nothing of the call was written. */
async function store(
  { call, service, asked }: { call: Call; service: ServiceState; asked: CaptureRequest },
  taken: readonly Taken[],
  results: CaptureResult[],
): Promise<{ state: SpaceState; isLate: boolean }> {
  const { states } = service;
  const { tenant } = call.key;
  let state = states.last(tenant, asked.space);
  let isBegun = false;
  for (const batch of batchesOf(taken)) {
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
      state = states.note(tenant, outcome.state);
      if (outcome.results === undefined && !isBegun) throw staleGeneration(state);
      // A purge came in between: what is left belongs to the generation before it.
      if (outcome.results === undefined) break;
      isBegun = true;
      for (const [index, { item, place, object }] of batch.entries()) {
        results[place] = resultOf(item, object, outcome.results[index] ?? 'quota');
      }
    } catch (error) {
      if (!(error instanceof MemoryError) || state === undefined) throw error;
      const isLate = error.reason === 'timeout';
      if (!isLate && !isBegun) throw error;
      leaveOut(taken, results, isLate ? 'deadline' : 'store_error');
      return { state, isLate };
    }
  }
  leaveOut(taken, results, 'store_error');
  state ??= states.note(tenant, await call.store.spaceState(asked.space, call.signal));
  return { state, isLate: false };
}

/**
 * The record may have been stored all the same: the client sends it again, and gets 'duplicate'
 * then.
 */
function leaveOut(
  taken: readonly Taken[],
  results: CaptureResult[],
  reason: 'deadline' | 'store_error',
): void {
  for (const { item, place } of taken) {
    results[place] ??= { digest: item.digest, state: 'deferred', reason };
  }
}

type Refusal = 'digest_mismatch' | 'invalid_record' | 'too_large';

/** The digest is made anew: what a client says about its own text is not believed. */
function objectOf(item: CaptureItem, session: string): NewObject | Refusal {
  const { record } = item;
  const bytes = recordBytes(record);
  if (bytes === undefined) return 'invalid_record';
  if (bytes.length > RECORD_BYTES_MAX) return 'too_large';
  if (contentDigest(bytes) !== item.digest || bytes.length !== item.bytes) return 'digest_mismatch';
  const texts = textsOf(record);
  if (texts.some(({ text }) => text.length > RECORD_CHARS_MAX)) return 'too_large';
  if (record.k !== 'tool_output' && texts.length === 0) return 'invalid_record';
  const one = textOfRecord(record);
  return {
    digest: item.digest,
    ref: contentReference(record.k, item.digest),
    kind: record.k,
    bytes,
    texts,
    ...(one === undefined ? {} : { textDigest: textDigest(one.role, one.said) }),
    session: item.session_id ?? session,
    client: item.client ?? '',
    fingerprint: item.fingerprint ?? '',
    ...(item.branch === undefined ? {} : { branch: item.branch }),
    observedAt: Date.parse(item.observed_at),
    position: item.position ?? 0,
    ...(item.dialect === undefined ? {} : { dialect: item.dialect }),
    ...(item.tool_name === undefined ? {} : { toolName: item.tool_name }),
    redactions: item.redactions ?? 0,
    ...(item.source === undefined ? {} : { source: item.source }),
    ...(item.timed === true ? { isTimed: true } : {}),
  };
}

/** The texts that are searched. Tool outputs are not: callers ask for them by name. */
function textsOf(record: ContentRecord): readonly SpokenText[] {
  const spoken: SpokenText[] =
    record.k === 'exchange'
      ? record.m.map(({ r, t }) => ({ role: r, text: t.join('\n\n') }))
      : record.k === 'note'
        ? [{ role: 'user', text: record.t.join('\n\n') }]
        : [];
  return spoken.filter(({ text }) => text.trim() !== '');
}

function refused({ digest }: CaptureItem, reason: Refusal): CaptureResult {
  return { digest, state: 'rejected', reason };
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
  }
}

/** The most important records come first: the deadline may cut off the rest. */
function* batchesOf(taken: readonly Taken[]): Generator<readonly Taken[]> {
  let batch: Taken[] = [];
  let bytes = 0;
  for (const one of taken.toSorted((a, b) => priorityOf(a) - priorityOf(b) || a.place - b.place)) {
    bytes += one.object.bytes.length;
    if (batch.length === BATCH_ITEMS_MAX || (batch.length > 0 && bytes > BATCH_BYTES_MAX)) {
      yield batch;
      batch = [];
      bytes = one.object.bytes.length;
    }
    batch.push(one);
  }
  if (batch.length > 0) yield batch;
}

function priorityOf({ item }: Taken): number {
  return item.priority ?? PRIORITY_FALLBACK;
}
