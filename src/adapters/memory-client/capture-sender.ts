import { batchesOf } from '../../core/bytes/batches.ts';
import { CAPTURE_ITEMS_MAX, REQUEST_BYTES_MAX } from '../../core/memory-api/limits.ts';
import type {
  CaptureAnswer,
  CaptureRequest,
  CaptureResult,
} from '../../core/memory-api/contract.ts';
import { NEW_GENERATION } from '../../core/memory-api/words.ts';
import type { CaptureState } from '../../ports/memory.ts';
import type { Acknowledgements } from './acknowledgements.ts';
import type { Operations } from './operations.ts';
import { ServiceFault } from './service-fault.ts';
import { malformed } from './service-link.ts';
import type { Outgoing } from '../../core/memory-api/record-items.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Sends texts to the service, each once. A text that the service does not acknowledge is not lost:
 * the call fails, and the caller, usually the outbox, sends it again.
 */

/** An item's own members beside its record. */
const ITEM_BYTES = 1024;
/** The refusals of the contract that end by themselves. */
const TRANSIENT: ReadonlySet<CaptureResult['reason']> = new Set([
  'deadline',
  'store_error',
  'quota',
]);

interface SenderParts {
  readonly operations: Operations;
  readonly acknowledgements: Acknowledgements;
}

export class CaptureSender {
  readonly #parts: SenderParts;

  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  /** One state for each, in order; undefined ones are 'rejected'. Rejects with MemoryError. */
  async send(
    texts: readonly (Outgoing | undefined)[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    if (signal.aborted) throw new MemoryError('timeout', 'The memory did not answer in time.');
    const states = new Map<string, CaptureState>();
    for (const batch of requestsOf(texts)) {
      // One after the other: a space commits one batch at a time anyway.
      // oxlint-disable-next-line no-await-in-loop
      const results = await this.#sendBatch(batch, signal);
      for (const [at, result] of results.entries()) {
        const outgoing = batch.items[at];
        if (outgoing !== undefined) states.set(keyOf(outgoing), stateOf(result));
      }
    }
    return texts.map((outgoing) => {
      if (outgoing === undefined) return 'rejected';
      const key = keyOf(outgoing);
      const state = states.get(key) ?? 'rejected';
      // The same text a second time in one call.
      if (state === 'stored') states.set(key, 'duplicate');
      return state;
    });
  }

  async #sendBatch(batch: Batch, signal: AbortSignal): Promise<readonly CaptureResult[]> {
    const answer = await this.#ask(batch, signal).catch((error: unknown) => {
      throw isOfRecords(error) ? error : unacknowledged(error);
    });
    const isAnswer =
      answer.space === batch.space &&
      answer.results.length === batch.items.length &&
      answer.results.every(({ digest }, at) => digest === batch.items[at]?.item.digest);
    if (!isAnswer) throw unacknowledged(malformed());
    this.#acknowledge(batch, answer);
    const isPutOff = answer.results.some(
      ({ state, reason }) =>
        state === 'deferred' || (state === 'rejected' && TRANSIENT.has(reason)),
    );
    if (isPutOff) throw new MemoryError('unavailable', 'The memory service deferred a record.');
    return answer.results;
  }

  /** When a space has moved on, svc asks once more with the new generation from the answer. */
  async #ask(batch: Batch, signal: AbortSignal): Promise<CaptureAnswer> {
    const { operations, acknowledgements } = this.#parts;
    const request: CaptureRequest = {
      space: batch.space,
      if_generation: acknowledgements.generationOf(batch.space) ?? NEW_GENERATION,
      items: batch.items.map(({ item }) => item),
    };
    try {
      return await operations.capture(request, signal);
    } catch (error) {
      const isStale = error instanceof ServiceFault && error.code === 'STALE_GENERATION';
      if (!isStale) throw error;
      const { current_generation: current, current_commit_seq: sequence } = error.details ?? {};
      if (current !== undefined) acknowledgements.stands(batch.space, current, sequence ?? 0);
      return operations.capture({ ...request, if_generation: current ?? NEW_GENERATION }, signal);
    }
  }

  #acknowledge({ space, items }: Batch, answer: CaptureAnswer): void {
    const { acknowledgements } = this.#parts;
    acknowledgements.stands(space, answer.generation, answer.commit_seq);
    const held = answer.results.flatMap(({ state, bytes }, at) => {
      const outgoing = items[at];
      const isHeld = state === 'durable' || state === 'duplicate';
      if (outgoing === undefined || !isHeld) return [];
      const { digest, bytes: own } = outgoing.item;
      return (bytes ?? own) === own ? [{ text: outgoing.text, digest, bytes: own }] : [];
    });
    acknowledgements.add(space, held);
  }
}

interface Batch {
  readonly space: string;
  readonly items: readonly Outgoing[];
}

/** By space, without repetitions, within the bounds of one request. */
function* requestsOf(texts: readonly (Outgoing | undefined)[]): Generator<Batch> {
  const bySpace = new Map<string, Map<string, Outgoing>>();
  for (const outgoing of texts) {
    if (outgoing === undefined) continue;
    const items = bySpace.get(outgoing.space) ?? new Map<string, Outgoing>();
    items.set(outgoing.text, outgoing);
    bySpace.set(outgoing.space, items);
  }
  for (const [space, texted] of bySpace) {
    for (const items of batchesOf(texted.values(), BATCHES)) yield { space, items };
  }
}

// Canonical bytes are the bytes that are sent: both are JSON with nothing escaped that need not be.
const BATCHES = {
  countMax: CAPTURE_ITEMS_MAX,
  sizeMax: REQUEST_BYTES_MAX.capture / 4,
  sizeOf: ({ item }: Outgoing) => item.bytes + ITEM_BYTES,
} as const;

function keyOf({ space, text }: Outgoing): string {
  return `${space} ${text}`;
}

function stateOf({ state, reason }: CaptureResult): CaptureState {
  if (state === 'durable') return 'stored';
  if (state === 'duplicate') return 'duplicate';
  return reason === 'forgotten' ? 'forgotten' : 'rejected';
}

/** The service read the batch and found fault with it: it will never accept the same batch. */
function isOfRecords(error: unknown): boolean {
  if (!(error instanceof ServiceFault)) return false;
  return ['INVALID_REQUEST', 'INVALID_JSON', 'PAYLOAD_TOO_LARGE'].includes(error.code);
}

/** Not 'invalid', which says that the records are: garbage in an answer must lose nothing. */
function unacknowledged(error: unknown): unknown {
  if (!(error instanceof MemoryError) || error.reason !== 'invalid') return error;
  return new MemoryError('unavailable', error.message, { cause: error });
}
