import { batchesOf, groupBy } from '../../../../src/core/bytes/batches.ts';
import { MemoryError } from '../../../../src/core/errors.ts';
import { mayUse } from '../../../../src/core/memory-api/keys.ts';
import { CAPTURE_ITEMS_MAX } from '../../../../src/core/memory-api/limits.ts';
import { outgoingRecords } from '../../../../src/adapters/memory-client/outgoing-records.ts';
import { type Outgoing, passageIn } from '../../../../src/core/memory-api/record-items.ts';
import { GLOBAL_SPACE, isSpace } from '../../../../src/core/request/space.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import type {
  CaptureState,
  Holding,
  HoldQuestion,
  MemoryRecord,
  MemorySupport,
  RecallAnswer,
  RecallQuestion,
  RequestMemory,
} from '../../../../src/ports/memory.ts';
import { objectOfItem } from '../../core/objects.ts';
import type { NewObject, ObjectState, TenantStore } from '../../ports/service-store.ts';

/**
 * The memory for model requests of a service, on the service's own store in the same process. A record is named by its
 * text's digest, so the same text is one record, whether the service captured it or a client sent it.
 */

interface ServiceMemoryParts {
  /** The store of one tenant, which cannot reach another tenant's data. */
  readonly store: TenantStore;
  /** The rights of the calling key. Undefined: everything is allowed. */
  readonly key?: MemoryRights;
  readonly clock: Pick<Clock, 'now'>;
}

interface MemoryRights {
  readonly scopes: readonly string[];
  /** Globs of the allowed spaces; undefined means all. */
  readonly spaces?: readonly string[];
}

const PASSAGES_MAX = 50;
/**
 * Bounds of a batch, equal to those of the operation that captures for clients, because a recall may have to wait for a
 * batch. `sizeMax` is in bytes.
 */
const BATCHES = {
  countMax: CAPTURE_ITEMS_MAX / 4,
  sizeMax: 32_768,
  sizeOf: ({ item }: Placed) => item.bytes,
} as const;

interface Placed extends Outgoing {
  /** The record's index in the call. */
  readonly place: number;
}

export class ServiceMemory implements RequestMemory {
  readonly supports: MemorySupport;
  readonly #parts: ServiceMemoryParts;

  constructor(parts: ServiceMemoryParts) {
    this.#parts = parts;
    const { scopes = ['read', 'write'] } = parts.key ?? {};
    const [read, write] = [scopes.includes('read'), scopes.includes('write')];
    this.supports = { kind: 'hosted', read, write };
  }

  async recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer> {
    const space = isSpace(question.space) ? question.space : GLOBAL_SPACE;
    const olderSpaces = (question.olderSpaces ?? []).filter(isSpace);
    const otherSpaces = mayUse(this.#parts.key ?? {}, GLOBAL_SPACE) ? [GLOBAL_SPACE] : [];
    const places = { space, olderSpaces, otherSpaces };
    const { state, items, exchanges, sessions } = await this.#parts.store.recall(
      { ...NO_PROOFS, ...question, ...places, itemsMax: PASSAGES_MAX },
      signal,
    );
    const spaces = [space, ...olderSpaces, ...otherSpaces];
    return {
      generation: state.generation,
      passages: items.flatMap((item) => passageIn(item, spaces) ?? []),
      ...(exchanges === undefined ? {} : { exchanges }),
      ...(sessions === undefined ? {} : { sessions }),
    };
  }

  async capture(
    records: readonly MemoryRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const states: CaptureState[] = records.map(() => 'rejected');
    const outgoing = (await outgoingRecords(records)).flatMap((one, place) =>
      one === undefined ? [] : [{ ...one, place }],
    );
    for (const [space, some] of groupBy(outgoing, (one) => one.space)) {
      for (const batch of batchesOf(some, BATCHES)) {
        // oxlint-disable-next-line no-await-in-loop -- In their order, each a transaction.
        const found = await this.#captureBatch(space, batch, signal);
        for (const [at, { place }] of batch.entries()) states[place] = found[at] ?? 'rejected';
      }
    }
    return states;
  }

  async hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]> {
    const { space, digests: candidates, nonce } = question;
    if (!isSpace(space)) return [];
    const asked = { ...NO_PROOFS, space, candidates, nonce, now: this.#parts.clock.now() };
    const { coverage } = await this.#parts.store.recall(asked, signal);
    return coverage.flatMap(({ digest, state, pop }) =>
      state === 'durable' && pop !== undefined ? [{ digest, proof: pop }] : [],
    );
  }

  async #captureBatch(
    space: string,
    batch: readonly Placed[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const objects = batch.map(({ item }): NewObject => {
      const object = objectOfItem(item, '');
      if (typeof object !== 'string') return object;
      throw new MemoryError('invalid', 'The store cannot hold a record.');
    });
    const now = this.#parts.clock.now();
    const { results } = await this.#parts.store.capture(
      { space, ifGeneration: undefined, objects, now },
      signal,
    );
    return results?.map(stateOf) ?? [];
  }
}

/** The members of a question that asks for neither memories nor proofs. Each caller replaces some of them. */
const NO_PROOFS = {
  otherSpaces: [],
  humanText: undefined,
  assistantText: '',
  excludeDigests: [],
  tokensMax: 0,
  itemsMax: 0,
  kinds: undefined,
  scoreMin: 0,
  candidates: [],
  nonce: new Uint8Array(),
  ifGeneration: undefined,
  deadlineAt: Infinity,
} as const;

/**
 * Converts a state of the store to a state of the memory port. Throws MemoryError for a full space: the space may have
 * room later, so the outbox must keep the record and try again.
 */
function stateOf(state: ObjectState): CaptureState {
  switch (state) {
    case 'durable':
      return 'stored';
    case 'duplicate':
      return state;
    case 'purged':
      return 'forgotten';
    case 'ref_collision':
    // A retry would delay all later records as long as the plan's limit is reached.
    case 'plan':
      return 'rejected';
    case 'quota':
      throw new MemoryError('unavailable', 'The space is full.');
  }
}
