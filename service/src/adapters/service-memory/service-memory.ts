import { batchesOf, groupBy } from '../../../../src/core/bytes/batches.ts';
import { objectOfItem } from '../../core/objects.ts';
import { CAPTURE_ITEMS_MAX, PURGE_DIGESTS_MAX } from '../../../../src/core/memory-api/limits.ts';
import {
  type Outgoing,
  outgoingRecord,
  saidIn,
} from '../../../../src/core/memory-api/record-items.ts';
import {
  isReference,
  isShortReference,
  referenceOf,
  type TextRole,
  textDigest,
} from '../../../../src/core/memory/reference.ts';
import { GLOBAL_SPACE, isSpace } from '../../../../src/core/request/space.ts';
import { newId } from '../../core/ids.ts';
import { mayUse } from '../../../../src/core/memory-api/keys.ts';
import type { Clock } from '../../../../src/ports/clock.ts';
import {
  type CaptureState,
  type ForgetFilter,
  type Holding,
  type HoldQuestion,
  type ListFilter,
  type Memory,
  type MemoryRecord,
  type MemorySupport,
  type RecallAnswer,
  type RecallQuestion,
  type RecordKey,
  REFERENCES_MAX,
} from '../../../../src/ports/memory.ts';
import type {
  NewObject,
  ObjectState,
  PurgeScope,
  ServiceItem,
  SpaceChoice,
  TenantStore,
  Origin,
  StoredObject,
} from '../../ports/service-store.ts';
import { MemoryError } from '../../../../src/core/errors.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import type {
  RecalledPassage,
  SpokenRecord,
  StoredRecord,
} from '../../../../src/core/memory/record.ts';

/**
 * The memory port over a memory service's own store, in the same process: no network, and nothing to
 * acknowledge. A record is named here by the digest of its text. The same words are one record, whether
 * they are captured here or sent by a client.
 */

interface ServiceMemoryParts {
  /** Belongs to one tenant and cannot reach the data of another one. */
  readonly store: TenantStore;
  /** The key that asks: it may use no other spaces, and do nothing else. All is allowed without one. */
  readonly key?: MemoryRights;
  readonly clock: Pick<Clock, 'now'>;
  readonly randomBytes: (count: number) => Uint8Array;
}

interface MemoryRights {
  readonly scopes: readonly string[];
  /** Globs; all spaces when absent. */
  readonly spaces?: readonly string[];
}

const LIST_MAX = 1000;
const PAGE_MAX = 100;
/** A record has 1 MiB at most; an answer is one of them, or a list of cut items made whole. */
const RETRIEVE_BYTES_MAX = 8 * 1024 * 1024;
const PASSAGES_MAX = 50;
/** As short as those of the service's own operation: a recall waits for one at most. */
const BATCHES = {
  countMax: CAPTURE_ITEMS_MAX / 4,
  sizeMax: 32_768,
  sizeOf: ({ item }: Placed) => item.bytes,
} as const;

interface Placed extends Outgoing {
  /** Where in the call. */
  readonly place: number;
}

export class ServiceMemory implements Memory {
  readonly supports: MemorySupport;
  readonly #parts: ServiceMemoryParts;
  #isClosed = false;

  constructor(parts: ServiceMemoryParts) {
    this.#parts = parts;
    const { scopes = ['read', 'write'] } = parts.key ?? {};
    const [read, write] = [scopes.includes('read'), scopes.includes('write')];
    this.supports = { kind: 'hosted', read, write };
  }

  async recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer> {
    const { olderSpaces = [], agent, humanText, assistantText, excludeDigests } = question;
    const { state, items, exchanges, sessions } = await this.#store.recall(
      {
        ...NO_PROOFS,
        space: isSpace(question.space) ? question.space : GLOBAL_SPACE,
        olderSpaces: olderSpaces.filter(isSpace),
        otherSpaces: this.#mayUse(GLOBAL_SPACE) ? [GLOBAL_SPACE] : [],
        text: humanText,
        recent: assistantText,
        excludeDigests,
        tokensMax: question.tokensMax,
        itemsMax: PASSAGES_MAX,
        now: question.now,
        ...(agent === undefined ? {} : { agent }),
      },
      signal,
    );
    return {
      generation: state.generation,
      passages: items.map(passageOf),
      ...(exchanges === undefined ? {} : { exchanges }),
      ...(sessions === undefined ? {} : { sessions }),
    };
  }

  async capture(
    records: readonly MemoryRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const states: CaptureState[] = records.map(() => 'rejected');
    const outgoing = records.flatMap((record, place) => {
      const one = outgoingRecord(record);
      return one === undefined ? [] : [{ ...one, place }];
    });
    for (const [space, some] of groupBy(outgoing, (one) => one.space)) {
      for (const batch of batchesOf(some, BATCHES)) {
        // oxlint-disable-next-line no-await-in-loop -- In their order, each a transaction.
        const found = await this.#captureBatch(space, batch, signal);
        for (const [at, { place }] of batch.entries()) states[place] = found[at] ?? 'rejected';
      }
    }
    return states;
  }

  async retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined> {
    const isHere = 'ref' in key || isSpace(key.space);
    const name = 'ref' in key ? await this.#whole(key.ref, signal) : key.digest;
    if (!isHere || name === undefined) return undefined;
    const spaces: SpaceChoice = 'ref' in key ? this.#everywhere : { space: key.space };
    const question = { spaces, refs: [name], bytesMax: RETRIEVE_BYTES_MAX };
    const [object] = (await this.#store.retrieve(question, signal)).objects;
    return object === undefined ? undefined : recordOfObject(object);
  }

  async list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]> {
    const { space, words, role, conversation: session, refs, since, until } = filter;
    if ((space !== undefined && !isSpace(space)) || words?.trim() === '') return [];
    const items = await this.#store.listItems(
      {
        ...EVERY_ITEM,
        spaces: this.#choiceOf(space),
        limit: Math.max(0, Math.min(filter.limit, LIST_MAX)),
        offset: Math.max(0, filter.offset ?? 0),
        role,
        session,
        refs,
        since,
        until,
        words,
      },
      signal,
    );
    const records: SpokenRecord[] = [];
    for (const item of items) {
      // oxlint-disable-next-line no-await-in-loop -- One at a time: a record may be a megabyte.
      const record = recordOfItem(item) ?? (await this.#wholeRecord(item, signal));
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  async references(start: string, signal: AbortSignal): Promise<readonly string[]> {
    const found = await this.#store.lookUp({ spaces: this.#everywhere, names: [start] }, signal);
    const refs = found.flatMap(({ textRef }) => textRef ?? []);
    return [...new Set(refs)].toSorted().slice(0, REFERENCES_MAX);
  }

  async forget(filter: ForgetFilter, signal: AbortSignal): Promise<number> {
    const { space } = filter;
    if (space !== undefined && !isSpace(space)) return 0;
    if (space !== undefined && !('refs' in filter) && !('words' in filter)) {
      const { records } = await this.#store.spaceState(space, signal);
      return records === 0 ? 0 : this.#purge(space, { all: true });
    }
    const meant = await this.#meantBy(filter, signal);
    let forgotten = 0;
    for (const [name, records] of groupBy(meant, (one) => one.space)) {
      const digests = [...new Set(records.map(({ digest }) => digest))];
      const limits = { countMax: PURGE_DIGESTS_MAX, sizeMax: Infinity, sizeOf: () => 0 };
      for (const some of batchesOf(digests, limits)) {
        // oxlint-disable-next-line no-await-in-loop -- Each leaves the space another generation.
        forgotten += await this.#purge(name, { digests: some });
      }
    }
    return forgotten;
  }

  async hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]> {
    const { space, digests: candidates, nonce } = question;
    if (!isSpace(space)) return [];
    const asked = { ...NO_PROOFS, space, candidates, nonce, now: this.#parts.clock.now() };
    const { coverage } = await this.#store.recall(asked, signal);
    return coverage.flatMap(({ digest, state, pop }) =>
      state === 'durable' && pop !== undefined ? [{ digest, proof: pop }] : [],
    );
  }

  /** The store is its owner's to close. */
  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #mayUse(space: string): boolean {
    return mayUse(this.#parts.key ?? {}, space);
  }

  get #everywhere(): SpaceChoice {
    return { globs: this.#parts.key?.spaces };
  }

  #choiceOf(space: string | undefined): SpaceChoice {
    return space === undefined ? this.#everywhere : { space };
  }

  get #store(): TenantStore {
    if (this.#isClosed) throw new MemoryError('unavailable', 'The memory is closed.');
    return this.#parts.store;
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
    const { results } = await this.#store.capture(
      { space, ifGeneration: undefined, objects, now },
      signal,
    );
    return results?.map(stateOf) ?? [];
  }

  /** A text that did not come whole in its item. */
  async #wholeRecord(
    { origin }: ServiceItem,
    signal: AbortSignal,
  ): Promise<SpokenRecord | undefined> {
    const spaces = { space: origin.space };
    const question = { spaces, refs: [origin.digest], bytesMax: RETRIEVE_BYTES_MAX };
    const [object] = (await this.#store.retrieve(question, signal)).objects;
    const record = object === undefined ? undefined : recordOfObject(object);
    if (record === undefined || record.role === 'tool') return undefined;
    return { ...record, role: record.role };
  }

  /** The one whole reference that a short one begins. */
  async #whole(ref: string, signal: AbortSignal): Promise<string | undefined> {
    if (!isShortReference(ref)) return ref;
    const [whole, another] = await this.references(ref, signal);
    return another === undefined ? whole : undefined;
  }

  async #meantBy(
    filter: ForgetFilter,
    signal: AbortSignal,
  ): Promise<readonly { readonly space: string; readonly digest: string }[]> {
    const spaces = this.#choiceOf(filter.space);
    if ('refs' in filter) {
      return this.#store.lookUp({ spaces, names: filter.refs.filter(isReference) }, signal);
    }
    const words = 'words' in filter ? filter.words : undefined;
    if (words === undefined || words.trim() === '') return [];
    const found: { readonly space: string; readonly digest: string }[] = [];
    for (const kind of [undefined, 'tool_output'] as const) {
      for (let offset = 0; ; offset += PAGE_MAX) {
        const page = { ...EVERY_ITEM, spaces, words, kind, limit: PAGE_MAX, offset };
        // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
        const items = await this.#store.listItems(page, signal);
        found.push(...items.map(({ origin }) => origin));
        if (items.length < PAGE_MAX) break;
      }
    }
    return found;
  }

  async #purge(space: string, scope: PurgeScope): Promise<number> {
    const { clock, randomBytes } = this.#parts;
    const purgeId = newId('prg', randomBytes);
    const order = { purgeId, space, scope, isDryRun: false, requestedBy: 'memory' };
    const { records } = await this.#store.beginPurge({ ...order, now: clock.now() });
    // oxlint-disable-next-line no-await-in-loop -- Recalls pass in between.
    while (!(await this.#store.continuePurge(purgeId, clock.now())));
    return records;
  }
}

/** A question that asks for nothing; each call fills in its part. */
const NO_PROOFS = {
  otherSpaces: [],
  text: undefined,
  recent: '',
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

const EVERY_ITEM = {
  kind: undefined,
  role: undefined,
  session: undefined,
  sourceId: undefined,
  refs: undefined,
  since: undefined,
  until: undefined,
} as const;

/** A space that is full may have room again: the outbox keeps the record, and tries once more. */
function stateOf(state: ObjectState): CaptureState {
  switch (state) {
    case 'durable':
      return 'stored';
    case 'duplicate':
      return state;
    case 'purged':
      return 'forgotten';
    case 'ref_collision':
    // Kept, it would hold back what comes after it for as long as the plan is full.
    case 'plan':
      return 'rejected';
    case 'quota':
      throw new MemoryError('unavailable', 'The space is full.');
  }
}

/** Rows of a service's store as the memory port has them. */

function passageOf({ origin, role, text, score = 0, isVerbatim }: ServiceItem): RecalledPassage {
  const speaker = role === 'assistant' ? role : 'user';
  const stated = isVerbatim ? undefined : origin.textDigest;
  const digest = stated ?? textDigest(speaker, text);
  return {
    ref: referenceOf(digest),
    digest,
    space: origin.space,
    role: speaker,
    text,
    at: origin.observedAt,
    client: origin.client,
    ...(origin.source === undefined ? {} : { source: origin.source }),
    score,
  };
}

/** Undefined when the text came cut, or is one of several. */
function recordOfItem({ origin, role, text, isVerbatim }: ServiceItem): SpokenRecord | undefined {
  if (!isVerbatim || role === 'tool') return undefined;
  return storedRecord(origin, { role, text });
}

function recordOfObject({ origin, bytes }: StoredObject): StoredRecord {
  return storedRecord(origin, saidIn(recordOfBytes(bytes)));
}

function storedRecord<Role extends TextRole>(
  origin: Origin,
  { role, text }: { readonly role: Role; readonly text: string },
): StoredRecord<Role> {
  const digest = textDigest(role, text);
  return {
    digest,
    ref: referenceOf(digest),
    space: origin.space,
    role,
    text,
    conversation: origin.session === '' ? origin.sourceId : origin.session,
    client: origin.client,
    at: origin.observedAt,
    fingerprint: origin.fingerprint,
    exchange: origin.position,
    ...(origin.branch === undefined ? {} : { branch: origin.branch }),
    ...(origin.source === undefined ? {} : { source: origin.source }),
  };
}
