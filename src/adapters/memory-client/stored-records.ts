import type { ItemsQuery, MemoryItem, Provenance } from '../../core/memory-api/contract.ts';
import type { PurgeScope } from '../../core/memory-api/purge-contract.ts';
import {
  PAGE_MAX,
  PURGE_DIGESTS_MAX,
  RETRIEVE_REFS_MAX,
  SESSION_CHARS_MAX,
  WORDS_CHARS_MAX,
} from '../../core/memory-api/limits.ts';
import { isReference, isShortReference, referenceOf } from '../../core/memory/reference.ts';
import { isSpace } from '../../core/request/space.ts';
import type {
  ForgetFilter,
  ListFilter,
  RecordKey,
  SpokenRecord,
  StoredRecord,
} from '../../ports/memory.ts';
import type { Acknowledgements } from './acknowledgements.ts';
import type { Operations } from './operations.ts';
import { malformed } from './service-link.ts';
import { recordInItem, recordInObject } from '../../core/memory-api/record-items.ts';
import { isoTime } from '../../core/memory/times.ts';
import { MemoryError } from '../../core/errors.ts';

/** Looking at what the service holds, and taking it out again. */

const LIST_MAX = 1000;
/** Newest memories among which a shortened reference is looked for. */
const LOOKED_THROUGH_MAX = 2000;
/** The pages that one call of forget reads; a further call forgets more. */
const FORGET_PAGES_MAX = 100;

export class StoredRecords {
  readonly #operations: Operations;
  readonly #acknowledgements: Acknowledgements;

  constructor(operations: Operations, acknowledgements: Acknowledgements) {
    this.#operations = operations;
    this.#acknowledgements = acknowledgements;
  }

  /** `purged`: the service held it and was asked to forget it. */
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

  /** The contract finds no beginnings, so the newest memories are looked through. */
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
   * Finds what to purge. The records are looked up first, because the service no longer shows them
   * afterwards.
   */
  async purgesFor(filter: ForgetFilter, signal: AbortSignal): Promise<readonly SpacePurge[]> {
    const found = new Found();
    if (filter.space !== undefined && !isSpace(filter.space)) return [];
    if ('refs' in filter) {
      const refs = filter.refs.filter((ref) => isReference(ref));
      for (let at = 0; at < refs.length; at += RETRIEVE_REFS_MAX) {
        const some = refs.slice(at, at + RETRIEVE_REFS_MAX);
        // oxlint-disable-next-line no-await-in-loop
        const fetched = await this.#fetch(some, filter.space, signal);
        for (const { record, digest } of fetched.found) found.add({ space: record.space, digest });
      }
      return found.purges;
    }
    if (!('words' in filter)) return [[filter.space, { all: true }]];
    const pagesMax = FORGET_PAGES_MAX * PAGE_MAX;
    const said = queriesOf({ ...filter, limit: pagesMax });
    const printed = said.map((query) => ({ ...query, kind: 'tool_output' as const }));
    for (const query of [...said, ...printed]) {
      // oxlint-disable-next-line no-await-in-loop
      for await (const items of this.#pages(query, pagesMax, signal)) {
        for (const { provenance } of items) found.add(provenance[0]);
      }
    }
    return found.purges;
  }

  /** How many records are gone. */
  async purge(purges: readonly SpacePurge[], signal: AbortSignal): Promise<number> {
    let forgotten = 0;
    for (const [space, scope] of purges) {
      // oxlint-disable-next-line no-await-in-loop -- Each leaves the space another generation.
      forgotten += await this.#purge(space, scope, signal);
    }
    return forgotten;
  }

  async #purge(space: string, scope: PurgeScope, signal: AbortSignal): Promise<number> {
    const receipt = await this.#operations.purge({ space, scope, confirm: space }, signal);
    if (receipt.space !== space || receipt.state === 'dry_run') throw malformed();
    this.#acknowledgements.stands(space, receipt.generation_after, 0);
    return receipt.counts.records;
  }

  async *#pages(
    query: ItemsQuery,
    wanted: number,
    signal: AbortSignal,
  ): AsyncGenerator<readonly MemoryItem[]> {
    let after: string | undefined;
    for (let seen = 0; seen < wanted;) {
      const limit = Math.min(PAGE_MAX, wanted - seen);
      const page = await this.#operations.items(
        { ...query, limit, ...(after === undefined ? {} : { after }) },
        signal,
      );
      const isElsewhere = page.data.some(({ provenance: [source] }) =>
        query.space === undefined ? false : source?.space !== query.space,
      );
      if (isElsewhere) throw malformed();
      yield page.data;
      seen += page.data.length;
      after = page.next_cursor ?? undefined;
      if (!page.has_more || after === undefined || page.data.length === 0) return;
    }
  }

  /** Items whose text came cut are fetched; outputs are no memories. */
  async #whole(items: readonly MemoryItem[], signal: AbortSignal): Promise<SpokenRecord[]> {
    const cut = items.filter((item) => recordInItem(item) === undefined);
    const fetched = new Map<string, SpokenRecord>();
    for (const { provenance } of cut) {
      const [source] = provenance;
      if (source === undefined) continue;
      // One at a time: a record may be a megabyte.
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
    const answer = await this.#operations.retrieve(
      { ...place, refs, max_bytes: RETRIEVE_BYTES_MAX },
      signal,
    );
    const found = answer.objects.map((object) => {
      const record = recordInObject(object);
      if (record === undefined || record.space !== (space ?? record.space)) throw malformed();
      return { record, digest: object.digest };
    });
    const purged = answer.missing.filter(({ reason }) => reason === 'purged');
    return { found, purged: purged.map(({ ref }) => ref) };
  }
}

export type SpacePurge = readonly [space: string, scope: PurgeScope];

class Found {
  readonly #digests = new Map<string, Set<string>>();

  get purges(): readonly SpacePurge[] {
    return [...this.#digests].flatMap(([space, found]) => {
      const digests = [...found];
      return Array.from({ length: Math.ceil(digests.length / PURGE_DIGESTS_MAX) }, (_, at) => {
        const some = digests.slice(at * PURGE_DIGESTS_MAX, (at + 1) * PURGE_DIGESTS_MAX);
        return [space, { digests: some }] as const;
      });
    });
  }

  /** `digest`: the contract's. */
  add(source: Pick<Provenance, 'space' | 'digest'> | undefined): void {
    if (source?.space === undefined) return;
    const { space, digest } = source;
    this.#digests.set(space, (this.#digests.get(space) ?? new Set()).add(digest));
  }
}

// Below the bound of the whole answer, in which a record is quoted in JSON.
const RETRIEVE_BYTES_MAX = 4 * 1024 * 1024;

/** No query at all for what nothing can match. */
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
  return Array.from({ length: Math.ceil(known.length / RETRIEVE_REFS_MAX) }, (_, at) => {
    const some = known.slice(at * RETRIEVE_REFS_MAX, (at + 1) * RETRIEVE_REFS_MAX);
    return { ...query, refs: some };
  });
}
