import { termsOf } from '../../src/core/recall/terms.ts';
import {
  type CaptureItem,
  type CaptureRequest,
  itemsQuery,
  type MemoryItem,
  type RecallRequest,
  type RetrieveRequest,
  type PurgeRequest,
} from '../../src/core/memory-api/contract.ts';
import type { FaultCode } from '../../src/core/memory-api/faults.ts';
import { type ContentRecord, textOfRecord } from '../../src/core/memory-api/records.ts';
import {
  contentDigest,
  contentReference,
  textDigest,
  referenceOf,
} from '../../src/core/memory/reference.ts';
import { parseShape } from '../../src/core/memory-api/shape.ts';
import { proofOf, recordBytes, recordOfText } from '../../src/core/memory-api/canonical.ts';
import type { StoredRecord } from '../../src/ports/memory.ts';
import { FakeMemory } from './fake-memory.ts';

/** The operations of the memory API over a memory in memory. */

interface FoundObject extends Record<string, unknown> {
  readonly bytes: number;
}

interface SpaceState {
  counter: number;
  sequence: number;
  /** What stands under the contract's digests. */
  readonly records: Map<string, { readonly text: string; readonly bytes: Buffer }>;
}

const patience = (): AbortSignal => AbortSignal.timeout(30_000);

export class FakeOperations {
  readonly memory = new FakeMemory();
  scopes: string[] = ['read', 'write'];
  features: string[] = ['coverage.pop.v1'];
  epoch = 'gFake';
  readonly #spaces = new Map<string, SpaceState>();

  readonly #purged = new Set<string>();

  /** As if somebody had purged from elsewhere, or a backup had come back. */
  moveOn(space: string, change: { readonly counter?: number; readonly sequence?: number }): void {
    Object.assign(this.stateOf(space), change);
  }

  stateOf(space: string): SpaceState {
    const state = this.#spaces.get(space) ?? { counter: 0, sequence: 0, records: new Map() };
    this.#spaces.set(space, state);
    return state;
  }

  generationOf(space: string): string {
    return `${this.epoch}.${this.stateOf(space).counter}`;
  }

  whoAmI(): unknown {
    return {
      tenant_id: 't_1',
      key: { key_id: 'fake', scopes: this.scopes },
      memory_mode_default: 'read-write',
      limits: {},
      features: this.features,
      api_version: '1.0',
      server_time: new Date().toISOString(),
    };
  }

  async recall(asked: RecallRequest): Promise<unknown> {
    const state = this.stateOf(asked.space);
    const generation = this.generationOf(asked.space);
    const isStale = asked.if_generation !== undefined && asked.if_generation !== generation;
    const excludeDigests = (asked.exclude_digests ?? []).flatMap(
      (digest) => state.records.get(digest)?.text ?? [],
    );
    const { passages } =
      asked.query === undefined
        ? { passages: [] }
        : await this.memory.recall(
            {
              space: asked.space,
              humanText: asked.query.text,
              assistantText: asked.query.recent?.[0] ?? '',
              excludeDigests,
              tokensMax: asked.max_tokens,
              now: Date.parse(asked.asked_at ?? ''),
            },
            patience(),
          );
    const items = await Promise.all(
      passages.map(async ({ digest, space, text, score }) => {
        const stored = await this.memory.retrieve({ digest, space }, patience());
        return stored === undefined ? [] : [itemOf(stored, { text, score })];
      }),
    );
    const nonce = Buffer.from(asked.nonce ?? '', 'base64url');
    return {
      request_id: 'req_fake',
      space: asked.space,
      ...(asked.nonce === undefined ? {} : { nonce: asked.nonce }),
      generation,
      commit_seq: state.sequence,
      as_of: new Date().toISOString(),
      items: items.flat(),
      tokens_total: 0,
      coverage: (asked.candidates ?? []).map((digest) => {
        const held = state.records.get(digest);
        if (isStale) return { digest, state: 'stale_generation' };
        if (held === undefined) return { digest, state: 'unknown' };
        const { bytes } = held;
        return { digest, state: 'durable', bytes: bytes.length, pop: proofOf(nonce, bytes) };
      }),
    };
  }

  async capture(asked: CaptureRequest): Promise<unknown> {
    const { space } = asked;
    const state = this.stateOf(space);
    const generation = this.generationOf(space);
    if (asked.if_generation !== 'new' && asked.if_generation !== generation) {
      throw new Refusal('STALE_GENERATION', {
        current_generation: generation,
        current_commit_seq: state.sequence,
      });
    }
    const results: unknown[] = [];
    for (const item of asked.items) {
      // oxlint-disable-next-line no-await-in-loop -- In order, like a transaction.
      results.push(await this.#captureItem(space, item));
    }
    return { request_id: 'req_fake', space, generation, commit_seq: state.sequence, results };
  }

  async #captureItem(space: string, item: CaptureItem): Promise<unknown> {
    const { digest } = item;
    const bytes = recordBytes(item.record);
    const told = textOfRecord(item.record);
    if (bytes === undefined || told === undefined) {
      return { digest, state: 'rejected', reason: 'invalid_record' };
    }
    if (contentDigest(bytes) !== digest || bytes.length !== item.bytes) {
      return { digest, state: 'rejected', reason: 'digest_mismatch' };
    }
    const common = {
      digest: textDigest(told.role, told.said),
      space,
      text: told.said,
      conversation: item.session_id ?? '',
      client: item.client ?? '',
      at: Date.parse(item.observed_at),
    };
    const { role } = told;
    const rest = { fingerprint: item.fingerprint ?? '', exchange: item.position ?? 0 };
    const more = {
      ...(item.branch === undefined ? {} : { branch: item.branch }),
      ...(item.source === undefined ? {} : { source: item.source }),
      ...(item.last_from === undefined ? {} : { lastFrom: item.last_from }),
      ...(item.timed === true ? { isTimed: true as const } : {}),
    };
    const [kept] = await this.memory.capture([{ ...common, role, ...rest, ...more }], patience());
    if (kept === 'forgotten') return { digest, state: 'rejected', reason: 'forgotten' };
    if (kept === 'rejected') return { digest, state: 'rejected', reason: 'invalid_record' };
    const state = this.stateOf(space);
    if (kept === 'stored') state.sequence += 1;
    state.records.set(digest, { text: common.digest, bytes });
    const durable = kept === 'stored' ? 'durable' : 'duplicate';
    const ref = contentReference(item.record.k, digest);
    return { digest, state: durable, ref, bytes: bytes.length };
  }

  async retrieve(asked: RetrieveRequest): Promise<unknown> {
    const spaces = asked.space === undefined ? [...this.#spaces.keys()] : [asked.space];
    const objects: FoundObject[] = [];
    const missing: { ref: string; reason: string }[] = [];
    let left = asked.max_bytes ?? Infinity;
    for (const ref of asked.refs) {
      // oxlint-disable-next-line no-await-in-loop -- One after the other, until the bytes are used up.
      const found = (await Promise.all(spaces.map((space) => this.#objects(ref, space)))).flat();
      if (found.length === 0) {
        missing.push({ ref, reason: this.#purged.has(ref) ? 'purged' : 'unknown' });
      }
      for (const object of found) {
        if (object.bytes > left) {
          missing.push({ ref, reason: 'over_max_bytes' });
          break;
        }
        left -= object.bytes;
        objects.push(object);
      }
    }
    return { ...(asked.space === undefined ? {} : { space: asked.space }), objects, missing };
  }

  async #objects(ref: string, space: string): Promise<FoundObject[]> {
    const objects: FoundObject[] = [];
    for (const [digest, { text, bytes }] of this.stateOf(space).records) {
      const record = JSON.parse(bytes.toString()) as ContentRecord;
      const own = contentReference(record.k, digest);
      if (![digest, own, referenceOf(text)].includes(ref)) continue;
      // oxlint-disable-next-line no-await-in-loop
      const stored = await this.memory.retrieve({ digest: text, space }, patience());
      if (stored === undefined) continue;
      const [provenance] = itemOf(stored, {}).provenance;
      objects.push({ ref: own, digest, bytes: bytes.length, record, provenance });
    }
    return objects;
  }

  async items(query: URLSearchParams): Promise<unknown> {
    const fields = {
      ...Object.fromEntries(query),
      ...(query.has('limit') ? { limit: Number(query.get('limit')) } : {}),
      ...(query.has('refs') ? { refs: query.get('refs')?.split(',') } : {}),
    };
    const { value } = parseShape(itemsQuery, fields);
    if (value === undefined) throw new Refusal('INVALID_REQUEST');
    const { space, q, role, session_id, refs, since, until, limit = 20, after = '0' } = value;
    if (value.kind === 'tool_output') return this.#outputs(space, q ?? '');
    const found = await this.memory.list(
      {
        ...(space === undefined ? {} : { space }),
        ...(q === undefined ? {} : { words: q }),
        ...(role === undefined ? {} : { role }),
        ...(session_id === undefined ? {} : { conversation: session_id }),
        ...(refs === undefined ? {} : { refs }),
        ...(since === undefined ? {} : { since: Date.parse(since) }),
        ...(until === undefined ? {} : { until: Date.parse(until) }),
        limit: limit + 1,
        offset: Number(after),
      },
      patience(),
    );
    const data = found.slice(0, limit).map((record) => itemOf(record, {}));
    const next = String(Number(after) + limit);
    const hasMore = found.length > limit;
    return { object: 'list', data, has_more: hasMore, next_cursor: hasMore ? next : null };
  }

  /** Those that hold every word, on one page. */
  async #outputs(space: string | undefined, words: string): Promise<unknown> {
    const asked = termsOf(words);
    const spaces = [...this.#spaces].filter(([name]) => name === (space ?? name));
    const texts = spaces.flatMap(([name, { records }]) =>
      [...records.values()].map(({ text }) => ({ digest: text, space: name })),
    );
    const found = await Promise.all(texts.map((key) => this.memory.retrieve(key, patience())));
    const data = found.flatMap((stored) => {
      const held = new Set(termsOf(stored?.text ?? ''));
      const isMeant = stored?.role === 'tool' && asked.length > 0;
      return isMeant && asked.every((word) => held.has(word)) ? [itemOf(stored, {})] : [];
    });
    return { object: 'list', data, has_more: false, next_cursor: null };
  }

  async purge(asked: PurgeRequest): Promise<unknown> {
    const { space, scope } = asked;
    const state = this.stateOf(space);
    const before = this.generationOf(space);
    const digests = 'digests' in scope ? scope.digests : undefined;
    if (digests === undefined && !('all' in scope)) throw new Refusal('INVALID_REQUEST');
    const refs = digests?.flatMap((digest) => {
      const text = state.records.get(digest)?.text;
      return text === undefined ? [] : [referenceOf(text)];
    });
    const all = [...state.records.values()].map(({ text }) => referenceOf(text));
    for (const ref of refs ?? all) this.#purged.add(ref);
    const forgotten = await this.memory.forget(
      refs === undefined ? { space } : { refs, space },
      patience(),
    );
    for (const digest of digests ?? state.records.keys()) state.records.delete(digest);
    if (forgotten > 0) Object.assign(state, { counter: state.counter + 1, sequence: 0 });
    return {
      object: 'svc.purge_receipt',
      purge_id: `prg_${'0'.repeat(26)}`,
      space,
      scope,
      state: 'tombstoned',
      counts: { records: forgotten },
      generation_before: before,
      generation_after: this.generationOf(space),
      requested_at: new Date().toISOString(),
    };
  }
}

/** The service says no. */
export class Refusal extends Error {
  readonly code: FaultCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(code: FaultCode, details?: Readonly<Record<string, unknown>>) {
    super(code);
    this.code = code;
    this.details = details;
  }
}

function itemOf(
  stored: StoredRecord,
  { text = stored.text.slice(0, 16_384), score }: { text?: string; score?: number },
): MemoryItem {
  const record = recordOfText(stored.role, stored.text);
  const digest = contentDigest(recordBytes(record) ?? Buffer.alloc(0));
  return {
    item_id: `it_${stored.ref}`,
    kind: record.k,
    text,
    verbatim: text === stored.text,
    tokens: Math.ceil(text.length / 4),
    ...(score === undefined ? {} : { score: Math.max(0, Math.min(1, score)) }),
    created_at: new Date(stored.at).toISOString(),
    provenance: [
      {
        digest,
        ref: contentReference(record.k, digest),
        space: stored.space,
        text_digest: stored.digest,
        source_id: 'src',
        session_id: stored.conversation,
        role: stored.role,
        client: stored.client,
        observed_at: new Date(stored.at).toISOString(),
        position: stored.exchange,
        fingerprint: stored.fingerprint,
        ...('branch' in stored && stored.branch !== undefined ? { branch: stored.branch } : {}),
        ...(stored.source === undefined ? {} : { source: stored.source }),
        ...('lastFrom' in stored && stored.lastFrom !== undefined
          ? { last_from: stored.lastFrom }
          : {}),
      },
    ],
  };
}
