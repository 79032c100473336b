import {
  EXCLUDED_MAX,
  OLDER_SPACES_MAX,
  QUERY_CHARS_MAX,
  RECALL_ITEMS_MAX,
  RECALL_TOKENS_MAX,
  RECENT_CHARS_MAX,
  CANDIDATES_MAX,
  CAPTURE_ITEMS_MAX,
  REQUEST_BYTES_MAX,
  PAGE_MAX,
  PURGE_DIGESTS_MAX,
  RETRIEVE_REFS_MAX,
  SESSION_CHARS_MAX,
  WORDS_CHARS_MAX,
} from '../../core/memory-api/limits.ts';
import { exchangeIn, sessionIn, wireAgent } from '../../core/memory-api/agent-recall.ts';
import type {
  RecallAnswer as WireAnswer,
  RecallRequest,
  CaptureAnswer,
  CaptureRequest,
  CaptureResult,
  ItemsQuery,
  MemoryItem,
  Provenance,
  PurgeScope,
} from '../../core/memory-api/contract.ts';
import { referenceOf, isReference, isShortReference } from '../../core/memory/reference.ts';
import { GLOBAL_SPACE, isSpace } from '../../core/request/space.ts';
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
  type SpokenRecord,
  type StoredRecord,
  REFERENCES_MAX,
} from '../../ports/memory.ts';
import type { AcknowledgedText, Acknowledgements } from './acknowledgements.ts';
import type { ServiceGate } from './gate.ts';
import type { KeyIdentity } from './key-identity.ts';
import type { Operations } from './operations.ts';
import { outgoingRecords } from './outgoing-records.ts';
import type { PlacedBlocks, PlacedRecords } from './placed-records.ts';
import { ServiceFault, malformed, type ServiceLink } from './service-link.ts';
import { isoTime } from '../../core/memory/times.ts';
import {
  passageIn,
  type Outgoing,
  recordInItem,
  recordInObject,
} from '../../core/memory-api/record-items.ts';
import { batchesOf, chunksOf, groupBy } from '../../core/bytes/batches.ts';
import { NEW_GENERATION } from '../../core/memory-api/words.ts';
import { MemoryError } from '../../core/errors.ts';

/**
 * Implements the memory port with a memory service. The service is not trusted: an answer that does not match the
 * contract or the question is refused. The code that leaves texts out of prompts checks the service's proofs itself
 * (proxy/possession.ts).
 */

/** The copies of outputs on this machine, which can be read without the service, and the blocks in the ledger. */
export interface Mirror
  extends PlacedBlocks, Pick<Memory, 'capture' | 'retrieve' | 'forget' | 'references'> {
  /** Deletes the copies of a space's outputs and marks none as forgotten, because svc may copy them again. */
  dropOutputs(space: string): Promise<void>;
  /** Returns spaces with copies, the last used first. */
  outputSpaces(limit: number): Promise<readonly string[]>;
  /** Starts writing outputs as files beside the store, because they are about to be left out. Returns at once. */
  keepFiles(space: string, digests: readonly string[]): void;
}

interface HostedMemoryParts {
  readonly link: ServiceLink;
  readonly operations: Operations;
  readonly gate: ServiceGate;
  readonly identity: KeyIdentity;
  readonly acknowledgements: Acknowledgements;
  readonly placed: PlacedRecords;
  readonly mirror?: Mirror;
  /** Deadline of a recall or a proof in milliseconds. */
  readonly recallMs: number;
}

/**
 * Least time between two checks by lookAround(), with which svc notices a deletion in a space that no client uses now.
 */
const LOOK_MS = 3_600_000;
/** Bound on the spaces that lookAround() checks, with one call each. Other spaces are checked when they are used. */
const LOOK_SPACES_MAX = 32;

const NOTHING_PLACED: ReadonlyMap<string, ReadonlySet<string>> = new Map();

const EVERYTHING_BUT_OUTPUTS = ['exchange', 'note', 'fact', 'summary'] as const;

export class HostedMemory implements Memory {
  readonly #parts: HostedMemoryParts;
  readonly #sender: CaptureSender;
  readonly #stored: StoredRecords;
  #lookedAt = -Infinity;

  constructor(parts: HostedMemoryParts) {
    this.#parts = parts;
    this.#sender = new CaptureSender(parts);
    this.#stored = new StoredRecords(parts);
  }

  get supports(): MemorySupport {
    return this.#parts.identity.supports;
  }

  async recall(question: RecallQuestion, signal: AbortSignal): Promise<RecallAnswer> {
    const { identity } = this.#parts;
    // A space with an invalid name has no memories, but the global space may answer.
    const space = isSpace(question.space) ? question.space : GLOBAL_SPACE;
    const request = this.#requestFor(space, question);
    const sharing = { ...request, include_spaces: [GLOBAL_SPACE] };
    const isShared = space !== GLOBAL_SPACE && identity.mayShare;
    const answer = await this.#ask(isShared ? sharing : request, signal).catch((error: unknown) => {
      const isDenied = error instanceof ServiceFault && error.code === 'SPACE_DENIED';
      if (!isShared || !isDenied) throw error;
      // The key may not read the global space.
      identity.notShared();
      return this.#ask(request, signal);
    });
    const own = [space, ...(request.older_spaces ?? [])];
    const spaces = isShared && identity.mayShare ? [...own, GLOBAL_SPACE] : own;
    const held = new Set(question.excludeDigests);
    const passages = answer.items.flatMap((item) => {
      const passage = passageIn(item, spaces);
      // Refuse an answer with texts of spaces that the question did not name.
      if (passage === undefined) throw malformed();
      return passage.text.trim() === '' || held.has(passage.digest) ? [] : [passage];
    });
    const { exchanges, sessions } = answer;
    // A chat gets only passages, and a service may return only passages for an agent too.
    if (exchanges === undefined) return { passages };
    if (!exchanges.every((exchange) => spaces.includes(exchange.space))) throw malformed();
    return {
      passages,
      exchanges: exchanges.map(exchangeIn),
      sessions: sessions?.map(sessionIn) ?? [],
    };
  }

  async capture(
    records: readonly MemoryRecord[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    const states = await this.#sender.send(await outgoingRecords(records), signal);
    await this.#mirrorOutputs(records, states, signal);
    return states;
  }

  async retrieve(key: RecordKey, signal: AbortSignal): Promise<StoredRecord | undefined> {
    const { mirror } = this.#parts;
    let found: StoredRecord | 'purged' | undefined;
    try {
      found = await this.#stored.retrieve(key, signal);
    } catch (error) {
      const nearby = await mirror?.retrieve(key, signal);
      if (nearby === undefined) throw error;
      return nearby;
    }
    if (found === undefined) return mirror?.retrieve(key, signal);
    if (found !== 'purged') return found;
    // The text was forgotten on another machine, so delete the copy too.
    await mirror?.forget(forgetKey(key), signal);
    return undefined;
  }

  list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]> {
    return this.#stored.list(filter, signal);
  }

  async references(start: string, signal: AbortSignal): Promise<readonly string[]> {
    const nearby = (await this.#parts.mirror?.references(start, signal)) ?? [];
    const there = await this.#stored.references(start, signal);
    return [...new Set([...nearby, ...there])].toSorted().slice(0, REFERENCES_MAX);
  }

  async forget(filter: ForgetFilter, signal: AbortSignal): Promise<number> {
    const { mirror, placed } = this.#parts;
    // Each pass of this loop purges at least one of the filter's references. If more passes than references are needed,
    // the service has kept records that it reported as purged.
    const roundsMax = 'refs' in filter ? Math.max(1, filter.refs.length) : FORGET_PASSES_MAX;
    let forgotten = 0;
    let rounds = 0;
    for (let isMore = true; isMore;) {
      rounds += 1;
      if (rounds > roundsMax) throw malformed();
      // oxlint-disable-next-line no-await-in-loop -- A second pass only for what did not fit into one answer.
      const { purges, isCut } = await this.#stored.purgesFor(filter, signal);
      try {
        // oxlint-disable-next-line no-await-in-loop
        forgotten += await this.#stored.purge(purges, signal);
      } finally {
        // Do this after an error too: a second purge does not report the records that this one has deleted.
        for (const space of new Set(purges.map(([name]) => name))) {
          // oxlint-disable-next-line no-await-in-loop -- One space, nearly always.
          await placed.emptyPurged(space, signal);
        }
      }
      isMore = isCut && purges.length > 0;
    }
    // Apply the filter to this machine too: to copies of outputs, and to memories from before the service was used.
    const nearby = await mirror?.forget(filter, signal);
    return Math.max(forgotten, nearby ?? 0);
  }

  async hold(question: HoldQuestion, signal: AbortSignal): Promise<readonly Holding[]> {
    const { acknowledgements, identity } = this.#parts;
    if (!identity.proves) return [];
    const acknowledged = acknowledgements.find(question.space, question.digests);
    const asked = new Map(acknowledged.map((one) => [one.digest, one]));
    const holdings: Holding[] = [];
    for (const some of chunksOf([...asked.keys()], CANDIDATES_MAX)) {
      // One call after the other, under one deadline. Nearly always one call is enough.
      // oxlint-disable-next-line no-await-in-loop
      const held = await this.#holdSome({ ...question, candidates: some, asked }, signal);
      if (held === undefined) return [];
      holdings.push(...held);
    }
    this.#parts.mirror?.keepFiles(
      question.space,
      holdings.map(({ digest }) => digest),
    );
    return holdings;
  }

  /**
   * Asks for the generations of at most LOOK_SPACES_MAX spaces: those whose records this machine's blocks quote, and
   * those whose outputs are copied here. For a space that no client uses, nothing else shows that something was
   * forgotten there. Does nothing without a mirror, or if the last check was less than an hour ago. Never rejects.
   */
  async lookAround(signal: AbortSignal): Promise<void> {
    const { mirror, operations, acknowledgements } = this.#parts;
    const now = performance.now();
    if (mirror === undefined || now - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = now;
    const [placed, outputs] = await Promise.all([
      mirror.placed().catch(() => NOTHING_PLACED),
      mirror.outputSpaces(LOOK_SPACES_MAX).catch(() => []),
    ]);
    const spaces = [...new Set([...placed.keys(), ...outputs])].filter(isSpace);
    for (const space of spaces.slice(0, LOOK_SPACES_MAX)) {
      try {
        // oxlint-disable-next-line no-await-in-loop -- No request waits for these.
        const { space_state: state } = await operations.whoAmI(signal, space);
        if (state?.space !== space) continue;
        acknowledgements.observe(space, state.generation, state.commit_seq);
      } catch (error) {
        // Continue after a refusal, such as that of a space that the key may not use.
        if (!(error instanceof ServiceFault)) return;
      }
    }
  }

  distrust(milliseconds: number): void {
    this.#parts.gate.close('invalid', milliseconds);
  }

  async close(): Promise<void> {
    this.#parts.identity.close();
    this.#parts.placed.close();
    await this.#parts.link.close();
  }

  /** Copies outputs that the service has stored, and deletes the copies of those that it has forgotten. */
  async #mirrorOutputs(
    records: readonly MemoryRecord[],
    states: readonly CaptureState[],
    signal: AbortSignal,
  ): Promise<void> {
    const { mirror } = this.#parts;
    const outputs = records.flatMap((record, at) =>
      record.role === 'tool' ? [{ record, state: states[at] }] : [],
    );
    const kept = outputs.filter(({ state }) => state === 'stored' || state === 'duplicate');
    if (kept.length > 0)
      await mirror?.capture(
        kept.map(({ record }) => record),
        signal,
      );
    for (const { record, state } of outputs) {
      // oxlint-disable-next-line no-await-in-loop -- Seldom more than one.
      if (state === 'forgotten') await mirror?.forget(forgetKey(record), signal);
    }
  }

  /**
   * Asks for proofs. Returns undefined if the space has another generation, or a lower commit sequence, than before.
   */
  async #holdSome(
    { space, nonce, candidates, asked }: CoverageQuestion,
    signal: AbortSignal,
  ): Promise<readonly Holding[] | undefined> {
    const { operations, acknowledgements, recallMs } = this.#parts;
    const generation = acknowledgements.generationOf(space);
    const sequence = acknowledgements.sequenceOf(space);
    const request: RecallRequest = {
      space,
      max_tokens: 0,
      candidates,
      nonce: Buffer.from(nonce).toString('base64url'),
      ...(generation === undefined ? {} : { if_generation: generation }),
      ...(sequence === undefined ? {} : { min_commit_seq: sequence }),
    };
    const answer = await operations.recall(request, recallMs, signal);
    if (answer.nonce !== request.nonce) throw malformed();
    if (this.#observe(request, answer) !== 'same') return undefined;
    return answer.coverage.flatMap((entry) => {
      const held = asked.get(entry.digest);
      if (held === undefined) throw malformed();
      if (entry.state !== 'durable') {
        acknowledgements.drop(space, held.text);
        return [];
      }
      // If the length differs or the proof is missing, return an invalid proof.
      const isWhole = entry.bytes === held.bytes && entry.pop !== undefined;
      return [{ digest: held.text, proof: isWhole ? (entry.pop ?? '') : '' }];
    });
  }

  #requestFor(space: string, question: RecallQuestion): RecallRequest {
    const { acknowledgements } = this.#parts;
    const excluded = acknowledgements
      .find(space, question.excludeDigests)
      .map(({ digest }) => digest);
    const older = question.olderSpaces?.filter(isSpace).slice(0, OLDER_SPACES_MAX) ?? [];
    const recent = trimmed(question.assistantText, RECENT_CHARS_MAX);
    return {
      space,
      query: {
        text: trimmed(question.humanText, QUERY_CHARS_MAX),
        ...(recent === '' ? {} : { recent: [recent] }),
      },
      asked_at: isoTime(question.now),
      max_tokens: Math.min(question.tokensMax, RECALL_TOKENS_MAX),
      max_items: RECALL_ITEMS_MAX,
      kinds: EVERYTHING_BUT_OUTPUTS,
      ...(older.length === 0 ? {} : { older_spaces: older }),
      ...(question.agent === undefined ? {} : { agent: wireAgent(question.agent) }),
      ...(excluded.length === 0 ? {} : { exclude_digests: excluded.slice(-EXCLUDED_MAX) }),
    };
  }

  async #ask(request: RecallRequest, signal: AbortSignal): Promise<WireAnswer> {
    const { operations, recallMs } = this.#parts;
    const answer = await operations.recall(request, recallMs, signal);
    this.#observe(request, answer);
    return answer;
  }

  #observe(request: RecallRequest, { space, generation, commit_seq }: WireAnswer) {
    if (space !== request.space) throw malformed();
    return this.#parts.acknowledgements.observe(space, generation, commit_seq);
  }
}

function forgetKey(key: RecordKey): ForgetFilter {
  return 'ref' in key ? { refs: [key.ref] } : { refs: [referenceOf(key.digest)], space: key.space };
}

interface CoverageQuestion extends HoldQuestion {
  readonly candidates: readonly string[];
  /** The texts by the digest that the service uses. */
  readonly asked: ReadonlyMap<string, AcknowledgedText>;
}

/** Cuts a text to `charsMax` characters, and replaces half surrogate pairs, which UTF-8 cannot encode. */
function trimmed(text: string, charsMax: number): string {
  return Buffer.from(text.slice(0, charsMax), 'utf8').toString('utf8').slice(0, charsMax);
}

/** Upper bound on the bytes that a request has for each record besides the record itself. */
const ITEM_BYTES = 1024;
export const SERVICE_FULL =
  'The memory service has no room for another record: its plan or this space is full.';
/** Reasons for which the service refuses a record only temporarily, so that svc sends it again. */
const TRANSIENT: ReadonlySet<CaptureResult['reason']> = new Set([
  'deadline',
  'store_error',
  'quota',
]);

type StoringParts = Pick<HostedMemoryParts, 'operations' | 'acknowledgements'>;

/**
 * Sends captures to the service. If the service puts off one of the texts, the call fails, and the caller, usually the
 * outbox, sends all of them again. A text that the service refuses for good gets the state 'rejected' or 'forgotten'.
 */
class CaptureSender {
  readonly #parts: StoringParts;

  constructor(parts: StoringParts) {
    this.#parts = parts;
  }

  /** Returns one state for each text, in order; 'rejected' for an undefined one. Rejects with MemoryError. */
  async send(
    texts: readonly (Outgoing | undefined)[],
    signal: AbortSignal,
  ): Promise<readonly CaptureState[]> {
    if (signal.aborted) throw new MemoryError('timeout', 'The memory did not answer in time.');
    const states = new Map<string, CaptureState>();
    for (const batch of requestsOf(texts)) {
      // One batch after the other, because the service commits one batch of a space at a time.
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
      // If the same text follows again in this call, its state is 'duplicate'.
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
    const isFull = answer.results.some(({ reason }) => reason === 'quota');
    const message = isFull ? SERVICE_FULL : 'The memory service deferred a record.';
    if (isPutOff) throw new MemoryError('unavailable', message);
    return answer.results;
  }

  /** Sends a batch. If the space's generation has changed, sends it once more with the new one from the answer. */
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
      if (current !== undefined) acknowledgements.observe(batch.space, current, sequence ?? 0);
      return operations.capture({ ...request, if_generation: current ?? NEW_GENERATION }, signal);
    }
  }

  #acknowledge({ space, items }: Batch, answer: CaptureAnswer): void {
    const { acknowledgements } = this.#parts;
    acknowledgements.observe(space, answer.generation, answer.commit_seq);
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

/** Groups texts by space into batches within the bounds of a request. Repeated texts are sent once. */
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

/** Bounds of a batch: as many records as the service accepts in a request, and a quarter of the bytes. */
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

/** Says whether the service has refused the batch itself, so that it would refuse the same batch again. */
function isOfRecords(error: unknown): boolean {
  if (!(error instanceof ServiceFault)) return false;
  return ['INVALID_REQUEST', 'INVALID_JSON', 'PAYLOAD_TOO_LARGE'].includes(error.code);
}

/**
 * Replaces an 'invalid' error by an 'unavailable' one. The caller drops records for which the memory answers 'invalid',
 * but here the answer of the service is invalid, and not the records.
 */
function unacknowledged(error: unknown): unknown {
  if (!(error instanceof MemoryError) || error.reason !== 'invalid') return error;
  return new MemoryError('unavailable', error.message, { cause: error });
}

const LIST_MAX = 1000;
/** Bound on the newest memories that are searched for a short reference. */
const LOOKED_THROUGH_MAX = 2000;
/**
 * Bounds on a purge by words: on the pages that a pass reads of the memories with these words, and of the outputs with
 * them, and on the passes. All passes together purge at most a million of each, in the deadline of the call.
 */
const FORGET_PAGES_MAX = 100;
const FORGET_PASSES_MAX = 100;

/** Reads, lists and purges the records that the service has stored. */
class StoredRecords {
  readonly #parts: StoringParts;

  constructor(parts: StoringParts) {
    this.#parts = parts;
  }

  /**
   * Returns a record; 'purged' if the service has deleted it on request; undefined if no record has this key, or if
   * several have this short reference.
   */
  async retrieve(
    key: RecordKey,
    signal: AbortSignal,
  ): Promise<StoredRecord | 'purged' | undefined> {
    if ('ref' in key && isShortReference(key.ref)) {
      const [whole, another] = await this.references(key.ref, signal);
      if (whole === undefined || another !== undefined) return undefined;
      return this.retrieve({ ref: whole }, signal);
    }
    const [ref, space] = 'ref' in key ? [key.ref, undefined] : [referenceOf(key.digest), key.space];
    if (!isReference(ref) || (space !== undefined && !isSpace(space))) return undefined;
    const { found, purged } = await this.#fetch([ref], space, signal);
    const isAsked = ({ digest }: StoredRecord): boolean =>
      'ref' in key ? !ref.startsWith('m_') || referenceOf(digest) === ref : digest === key.digest;
    if (!found.every(({ record }) => isAsked(record))) throw malformed();
    return found[0]?.record ?? (purged.includes(ref) ? 'purged' : undefined);
  }

  async list(filter: ListFilter, signal: AbortSignal): Promise<readonly SpokenRecord[]> {
    const { offset = 0, refs } = filter;
    const limit = Math.min(filter.limit, LIST_MAX);
    const queries = queriesOf(filter);
    const records: SpokenRecord[] = [];
    for (const query of queries) {
      // oxlint-disable-next-line no-await-in-loop -- Pages come one after the other.
      for await (const items of this.#pages(query, offset + limit, signal)) {
        records.push(...(await this.#whole(items, signal)));
      }
    }
    const isSplit = refs !== undefined && queries.length > 1;
    const ordered = isSplit ? records.toSorted((one, other) => other.at - one.at) : records;
    return ordered.slice(offset, offset + limit);
  }

  /** Finds references by their beginning in the newest LOOKED_THROUGH_MAX memories: the service has no such search. */
  async references(start: string, signal: AbortSignal): Promise<readonly string[]> {
    const found = new Set<string>();
    for await (const items of this.#pages({}, LOOKED_THROUGH_MAX, signal)) {
      for (const { ref } of await this.#whole(items, signal)) {
        if (ref.startsWith(start)) found.add(ref);
      }
    }
    return [...found];
  }

  /**
   * Returns the purges that a filter needs. Unless a whole space is purged, it asks for the records first, because a
   * purge needs their digests. `isCut`: some records did not fit into an answer, so ask again after these purges.
   */
  async purgesFor(
    filter: ForgetFilter,
    signal: AbortSignal,
  ): Promise<{ readonly purges: readonly SpacePurge[]; readonly isCut: boolean }> {
    if (filter.space !== undefined && !isSpace(filter.space)) return { purges: [], isCut: false };
    if ('refs' in filter) {
      const refs = filter.refs.filter((ref) => isReference(ref));
      const found: Found[] = [];
      let isCut = false;
      for (const some of chunksOf(refs, RETRIEVE_REFS_MAX)) {
        // oxlint-disable-next-line no-await-in-loop
        const fetched = await this.#fetch(some, filter.space, signal);
        found.push(...fetched.found.map(({ record, digest }) => ({ ...record, digest })));
        isCut ||= fetched.isCut;
      }
      return { purges: purgesOf(found), isCut };
    }
    if (!('words' in filter)) return { purges: [[filter.space, { all: true }]], isCut: false };
    const pagesMax = FORGET_PAGES_MAX * PAGE_MAX;
    const said = queriesOf({ ...filter, limit: pagesMax });
    const printed = said.map((query) => ({ ...query, kind: 'tool_output' as const }));
    const found: Found[] = [];
    let isCut = false;
    for (const query of [...said, ...printed]) {
      let count = 0;
      // oxlint-disable-next-line no-await-in-loop
      for await (const items of this.#pages(query, pagesMax, signal)) {
        found.push(...items.flatMap(({ provenance: [source] }) => source ?? []));
        count += items.length;
      }
      isCut ||= count >= pagesMax;
    }
    return { purges: purgesOf(found), isCut };
  }

  async purge(purges: readonly SpacePurge[], signal: AbortSignal): Promise<number> {
    let forgotten = 0;
    const { operations, acknowledgements } = this.#parts;
    for (const [space, scope] of purges) {
      // oxlint-disable-next-line no-await-in-loop -- Each purge gives the space a new generation.
      const receipt = await operations.purge({ space, scope, confirm: space }, signal);
      if (receipt.space !== space || receipt.state === 'dry_run') throw malformed();
      acknowledgements.observe(space, receipt.generation_after, 0);
      forgotten += receipt.counts.records;
    }
    return forgotten;
  }

  async *#pages(
    query: ItemsQuery,
    wanted: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly MemoryItem[]> {
    let after: string | undefined;
    for (let seen = 0; seen < wanted;) {
      const limit = Math.min(PAGE_MAX, wanted - seen);
      const page = await this.#parts.operations.items(
        { ...query, limit, ...(after === undefined ? {} : { after }) },
        signal,
      );
      const isElsewhere = page.data.some(
        ({ provenance: [source] }) => source?.space !== query.space,
      );
      if (query.space !== undefined && isElsewhere) throw malformed();
      yield page.data;
      seen += page.data.length;
      const next = page.next_cursor ?? undefined;
      if (!page.has_more || next === undefined || page.data.length === 0) return;
      // Without an end, an export would write the same page again and again.
      if (next === after) throw malformed();
      after = next;
    }
  }

  /** Returns the whole records of a list. Fetches those whose text the list has shortened, and skips outputs. */
  async #whole(items: readonly MemoryItem[], signal: AbortSignal): Promise<SpokenRecord[]> {
    const cut = items.filter((item) => recordInItem(item) === undefined);
    const fetched = new Map<string, SpokenRecord>();
    for (const { provenance } of cut) {
      const [source] = provenance;
      if (source === undefined) continue;
      // One record at a time, because a record may have a megabyte.
      // oxlint-disable-next-line no-await-in-loop
      const [found] = (await this.#fetch([source.digest], source.space, signal)).found;
      if (found !== undefined && found.record.role !== 'tool') {
        fetched.set(source.digest, { ...found.record, role: found.record.role });
      }
    }
    return items.flatMap(
      (item) => recordInItem(item) ?? fetched.get(item.provenance[0]?.digest ?? '') ?? [],
    );
  }

  async #fetch(refs: readonly string[], space: string | undefined, signal: AbortSignal) {
    if (signal.aborted) throw new MemoryError('timeout', 'The memory did not answer in time.');
    const place = space === undefined ? {} : { space };
    const answer = await this.#parts.operations.retrieve(
      { ...place, refs, max_bytes: RETRIEVE_BYTES_MAX },
      signal,
    );
    const found = answer.objects.map((object) => {
      const record = recordInObject(object);
      if (record === undefined || record.space !== (space ?? record.space)) throw malformed();
      return { record, digest: object.digest };
    });
    const purged = answer.missing.filter(({ reason }) => reason === 'purged');
    const isCut = answer.missing.some(({ reason }) => reason === 'over_max_bytes');
    return { found, purged: purged.map(({ ref }) => ref), isCut };
  }
}

type SpacePurge = readonly [space: string, scope: PurgeScope];

/** The space of a record, and the digest that the service uses for it. */
type Found = Pick<Provenance, 'space' | 'digest'>;

function purgesOf(found: readonly Found[]): readonly SpacePurge[] {
  const bySpace = groupBy(found, ({ space = '' }) => space);
  return [...bySpace].flatMap(([space, records]) => {
    const digests = [...new Set(records.map(({ digest }) => digest))];
    if (space === '') return [];
    return chunksOf(digests, PURGE_DIGESTS_MAX).map((some): SpacePurge => [
      space,
      { digests: some },
    ]);
  });
}

/**
 * Bound on the bytes of the records in an answer. It is below the bound on the answer itself, in which each record is a
 * JSON string.
 */
const RETRIEVE_BYTES_MAX = 4 * 1024 * 1024;

/** Returns the queries of a filter; none if nothing can match it. */
function queriesOf(filter: ListFilter): readonly ItemsQuery[] {
  const { space, words, role, conversation, refs, since, until } = filter;
  if (space !== undefined && !isSpace(space)) return [];
  if (words?.trim() === '' || (conversation?.length ?? 0) > SESSION_CHARS_MAX) return [];
  const query: ItemsQuery = {
    ...(space === undefined ? {} : { space }),
    ...(words === undefined ? {} : { q: words.slice(0, WORDS_CHARS_MAX) }),
    ...(role === undefined ? {} : { role }),
    ...(conversation === undefined ? {} : { session_id: conversation }),
    ...(since === undefined ? {} : { since: isoTime(since) }),
    ...(until === undefined ? {} : { until: isoTime(until) }),
  };
  if (refs === undefined) return [query];
  const known = refs.filter((ref) => isReference(ref));
  return chunksOf(known, RETRIEVE_REFS_MAX).map((some) => ({ ...query, refs: some }));
}
