import {
  type CoverageEntry,
  type MemoryItem,
  type RecallAnswer,
  type RecallRequest,
  recallRequest,
} from '../../../../src/core/memory-api/contract.ts';
import { RECALL_ITEMS_MAX } from '../../../../src/core/memory-api/limits.ts';
import type { ServiceAnswer, ServiceQuestion, SpaceState } from '../../ports/service-store.ts';
import {
  type Call,
  checkSpaces,
  type Operation,
  readBody,
  replyJson,
  StateOfCall,
} from '../call.ts';
import { ServiceFault } from '../fault.ts';
import { agentOf, exchangeOf, sessionOf } from '../../../../src/core/memory-api/agent-recall.ts';
import { mayUse } from '../../../../src/core/memory-api/keys.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/** Bound on the items of an answer, if the call names none: the contract's default. */
const ITEMS_FALLBACK = 20;
/**
 * How long the client may fetch the records of an answer: the contract's 24 hours. Here records do not expire, but a
 * purge may erase them.
 */
const HOLD_MS = 24 * 3600 * 1000;
/** Time before the deadline for writing the answer. */
const ANSWER_MS = 5;

export const recall: Operation = async (call) => {
  const asked = readBody(call, recallRequest);
  checkSpaces(call.key, [asked.space, ...(asked.include_spaces ?? [])]);
  const found = await ask(call, asked);
  const { state } = found;
  const isStale = asked.if_generation !== undefined && asked.if_generation !== state.generation;
  if (isStale && asked.require_generation === true) throw staleGeneration(state);
  return replyJson(answerOf(call, asked, found));
};

export function staleGeneration({ generation, commit_seq: sequence }: SpaceState): ServiceFault {
  const message = 'The space has a newer generation.';
  const details = { current_generation: generation, current_commit_seq: sequence };
  return new ServiceFault('STALE_GENERATION', message, { details });
}

async function ask(call: Call, asked: RecallRequest): Promise<ServiceAnswer> {
  const during = new StateOfCall(call, asked.space);
  try {
    return await call.store.recall(questionOf(call, asked), call.signal);
  } catch (error) {
    const state = during.last;
    const isLate = error instanceof MemoryError && error.reason === 'timeout';
    if (!isLate || state === undefined) throw error;
    const { candidates = [] } = asked;
    const coverage = candidates.map((digest) => ({ digest, state: 'not_checked' as const }));
    return { state, items: [], coverage, isTruncated: false, isPartial: true };
  } finally {
    during.end();
  }
}

function questionOf(call: Call, asked: RecallRequest): ServiceQuestion {
  return {
    space: asked.space,
    otherSpaces: asked.include_spaces ?? [],
    humanText: asked.query?.text,
    assistantText: asked.query?.recent?.join('\n') ?? '',
    excludeDigests: asked.exclude_digests ?? [],
    tokensMax: asked.max_tokens,
    itemsMax: Math.min(asked.max_items ?? ITEMS_FALLBACK, RECALL_ITEMS_MAX),
    kinds: asked.kinds,
    scoreMin: asked.min_score ?? 0,
    candidates: asked.candidates ?? [],
    nonce: Buffer.from(asked.nonce ?? '', 'base64url'),
    ifGeneration: asked.if_generation,
    deadlineAt: call.deadlineAt - ANSWER_MS,
    // The client derived these spaces and no user named them, so those that the key may not use are left out.
    olderSpaces: (asked.older_spaces ?? []).filter((space) => mayUse(call.key, space)),
    ...(asked.agent === undefined ? {} : { agent: agentOf(asked.agent) }),
    now: asked.asked_at === undefined ? call.now : Date.parse(asked.asked_at),
  };
}

function answerOf(call: Call, asked: RecallRequest, found: ServiceAnswer): RecallAnswer {
  const { state, items } = found;
  const isBehind = (asked.min_commit_seq ?? 0) > state.commit_seq;
  const degraded = isBehind ? 'replica_lag' : null;
  return {
    request_id: call.requestId,
    space: state.space,
    ...(asked.nonce === undefined ? {} : { nonce: asked.nonce }),
    generation: state.generation,
    commit_seq: state.commit_seq,
    as_of: isoTime(call.now),
    items,
    tokens_total: items.reduce((sum, { tokens }) => sum + tokens, 0),
    truncated: found.isTruncated,
    coverage: found.coverage.map((one) => coverageOf(one, items)),
    hold_until: isoTime(call.now + HOLD_MS),
    ...(found.exchanges === undefined ? {} : { exchanges: found.exchanges.map(exchangeOf) }),
    ...(found.sessions === undefined ? {} : { sessions: found.sessions.map(sessionOf) }),
    degraded: found.isPartial ? 'deadline' : degraded,
  };
}

function coverageOf(coverage: CoverageEntry, items: readonly MemoryItem[]): CoverageEntry {
  const ids = items
    .filter(({ provenance }) => provenance[0]?.digest === coverage.digest)
    .map(({ item_id: id }) => id);
  return ids.length === 0 ? coverage : { ...coverage, item_ids: ids };
}
