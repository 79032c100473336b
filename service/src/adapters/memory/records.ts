import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { isDigest, referenceOf } from '../../../../src/core/memory/reference.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import { proofOf } from '../../../../src/core/memory-api/canonical.ts';
import { listTerms } from '../../../../src/adapters/store/records.ts';
import { textsOf } from '../../core/objects.ts';
import type {
  CoverageEntry,
  MemoryItem,
  Source,
  StoredObject,
} from '../../../../src/core/memory-api/contract.ts';
import type {
  ItemFilter,
  ItemKey,
  MissingReason,
  ObjectKind,
  PageFilter,
  RetrieveAnswer,
  RetrieveQuestion,
  ServiceQuestion,
} from '../../ports/service-store.ts';
import type { Rows, SqlValue } from '../../ports/rows.ts';
import {
  factsOf,
  type ItemRow,
  listedItem,
  objectOfItem,
  type OriginRow,
  outputItem,
  provenanceOf,
  type SaidItem,
  sourceIdOf,
  sourceNumber,
} from './row-shapes.ts';
import type { Spaces } from './spaces.ts';
import { MEMORY } from './statements.ts';

/** Reads a tenant's records: whole, as proofs, and as items of a list or a search. */

/** Bound on the records of one retrieval: a reference without a space may name a record in each of several spaces. */
const OBJECTS_MAX = 256;
/** Proofs between two checks of the deadline. One statement reads their records, which have about 100 kB together. */
const PROOFS_PER_LOOK = 64;

/** Tool outputs that one statement reads for a list. */
const OUTPUTS_READ = 32;

interface ProofRow {
  readonly digest: string;
  readonly text_digest: string | null;
  readonly ref: string;
  readonly redactions: number;
  readonly bytes: Uint8Array;
}

interface RetrievedRow extends OriginRow {
  readonly kind: ObjectKind;
  readonly tool_name: string | null;
  readonly size: number;
  readonly bytes: Uint8Array;
}

interface WholeRow extends ItemRow {
  readonly bytes: Uint8Array;
}

type OutputRow = Pick<WholeRow, 'record_id' | 'created_at' | 'bytes'> & OriginRow;

interface SourceRow {
  readonly id: number;
  readonly session: string;
  readonly client: string;
  readonly first_seen: number;
  readonly last_seen: number;
  readonly records: number;
  readonly bytes: number;
}

/** The search for texts that contain all given words, by the index of SQLite or PostgreSQL. */
export interface WordSearch {
  readonly statement: string;
  /** Returns the values of the statement's parameters from `$13` on. */
  valuesOf(spaces: readonly number[], terms: readonly string[]): SqlValue[];
}

export class Records {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #spaces: Spaces;

  constructor(rows: Rows, tenant: string, spaces: Spaces) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#spaces = spaces;
  }

  /**
   * Proves which of the candidates the store has, by reading all their bytes. `isPartial`: the deadline left some
   * unread. It begins before `state` has resolved, because the caller's generation is rarely outdated. If it is, the
   * proofs are dropped.
   */
  async prove(
    question: ServiceQuestion,
    state: Promise<{ readonly generation: string }>,
  ): Promise<{ coverage: CoverageEntry[]; isPartial: boolean }> {
    const { candidates, ifGeneration, deadlineAt } = question;
    // Return before a promise is derived from `state`: nothing would handle a rejection of that promise.
    if (candidates.length === 0) return { coverage: [], isPartial: false };
    const isStale = state.then(
      ({ generation }) => ifGeneration !== undefined && ifGeneration !== generation,
    );
    const coverage: CoverageEntry[] = [];
    const withRest = (from: number, rest: 'stale_generation' | 'not_checked'): CoverageEntry[] =>
      coverage.concat(candidates.slice(from).map((digest) => ({ digest, state: rest })));
    for (let at = 0; at < candidates.length; at += PROOFS_PER_LOOK) {
      const isLate = Date.now() > deadlineAt;
      const some = isLate ? [] : candidates.slice(at, at + PROOFS_PER_LOOK);
      // oxlint-disable-next-line no-await-in-loop -- The deadline is checked in between.
      const [stale, proven] = await Promise.all([isStale, this.#proveSome(some, question)]);
      if (stale) return { coverage: withRest(0, 'stale_generation'), isPartial: false };
      if (isLate) return { coverage: withRest(at, 'not_checked'), isPartial: true };
      coverage.push(...proven);
    }
    return { coverage, isPartial: false };
  }

  async retrieve({ spaces, refs, bytesMax }: RetrieveQuestion): Promise<RetrieveAnswer> {
    const chosen = await this.#spaces.readable(spaces);
    const objects: StoredObject[] = [];
    const missing: { ref: string; reason: MissingReason }[] = [];
    let bytes = 0;
    for (const ref of new Set(refs)) {
      // oxlint-disable-next-line no-await-in-loop -- A connection answers one query after the other.
      const rows = await this.#find(ref, chosen);
      // oxlint-disable-next-line no-await-in-loop
      if (rows.length === 0) missing.push({ ref, reason: await this.#whyMissing(ref, chosen) });
      for (const row of rows) {
        if (bytes + row.size > bytesMax || objects.length === OBJECTS_MAX) {
          missing.push({ ref, reason: 'over_max_bytes' });
          break;
        }
        bytes += row.size;
        objects.push({
          ref: row.ref,
          digest: row.digest,
          bytes: row.bytes.length,
          record: recordOfBytes(row.bytes),
          ...(row.tool_name === null ? {} : { tool_name: row.tool_name }),
          provenance: provenanceOf(row, row.kind === 'tool_output' ? 'tool' : undefined),
        });
      }
    }
    const state = 'space' in spaces ? await this.#spaces.state(spaces.space) : undefined;
    return { state, objects, missing };
  }

  async list(filter: ItemFilter, search: WordSearch): Promise<MemoryItem[]> {
    if (filter.kind === 'tool_output') return this.#outputs(filter);
    const { spaces, role, session, refs, since, until, words, kind, sourceId } = filter;
    const chosen = await this.#spaces.readable(spaces);
    const terms = listTerms(words ?? '');
    // A search text without a searchable word finds nothing.
    if (words !== undefined && terms.length === 0) return [];
    const values: SqlValue[] = [
      this.#tenant,
      chosen,
      role ?? null,
      session ?? null,
      since ?? null,
      until ?? null,
      kind ?? null,
      sourceId === undefined ? null : sourceNumber(sourceId),
      refs ?? null,
      filter.limit,
      filter.offset,
    ];
    const rows =
      terms.length === 0
        ? await this.#rows.all<WholeRow>(MEMORY.listItems, ...values)
        : await this.#rows.all<WholeRow>(
            search.statement,
            ...values,
            terms.length,
            ...search.valuesOf(chosen, terms),
          );
    return rows.map((row) => listedItem(factsOf(row), wholeOf(row)));
  }

  async digestOf({ space, itemId }: ItemKey): Promise<string | undefined> {
    const values = [this.#tenant, space, objectOfItem(itemId)] as const;
    return (await this.#rows.get<{ digest: string }>(MEMORY.digestOfItem, ...values))?.digest;
  }

  async sources({ spaces, limit, offset }: PageFilter): Promise<Source[]> {
    const chosen = await this.#spaces.readable(spaces);
    const values = [this.#tenant, chosen, limit, offset] as const;
    const rows = await this.#rows.all<SourceRow>(MEMORY.listSources, ...values);
    return rows.map(({ id, session, client, first_seen: first, last_seen: last, ...sums }) => ({
      source_id: sourceIdOf(id),
      kind: session === '' ? 'manual' : 'conversation',
      session_id: session === '' ? null : session,
      ...(client === '' ? {} : { client }),
      first_seen: isoTime(first),
      last_seen: isoTime(last),
      ...sums,
    }));
  }

  // Tool outputs are not indexed, so read them newest first until the page is full.
  async #outputs({ spaces, session, words, role, offset, limit }: ItemFilter) {
    const terms = listTerms(words ?? '');
    if (role !== undefined || (words !== undefined && terms.length === 0)) return [];
    const chosen = await this.#spaces.readable(spaces);
    const found: MemoryItem[] = [];
    let last: OutputRow | undefined;
    while (found.length < offset + limit) {
      // oxlint-disable-next-line no-await-in-loop -- The next page begins where this one ends.
      const rows: OutputRow[] = await this.#rows.all<OutputRow>(
        MEMORY.listOutputs,
        this.#tenant,
        chosen,
        session ?? null,
        last?.observed_at ?? null,
        last?.record_id ?? null,
        OUTPUTS_READ,
      );
      for (const row of rows) {
        const item = outputItem(row, terms);
        if (item !== undefined) found.push(item);
      }
      last = rows.at(-1);
      if (rows.length < OUTPUTS_READ) break;
    }
    return found.slice(offset, offset + limit);
  }

  /** Returns the item of a text, by the text's digest; undefined if the text was deleted. */
  async itemOf(space: string, digest: string): Promise<SaidItem | undefined> {
    const row = await this.#rows.get<WholeRow>(MEMORY.itemOfText, this.#tenant, space, digest);
    return row === undefined ? undefined : { facts: factsOf(row), whole: wholeOf(row) };
  }

  /** Returns the digests of the texts that `excludeDigests` names, each by its own digest or by its record's digest. */
  async textsOf({ space, olderSpaces = [], otherSpaces, excludeDigests }: ServiceQuestion) {
    const texts = excludeDigests.filter(isDigest);
    if (texts.length === excludeDigests.length) return texts;
    const rows = await this.#rows.all<{ digest: string }>(
      MEMORY.textsOfRecords,
      this.#tenant,
      [space, ...olderSpaces, ...otherSpaces],
      excludeDigests,
    );
    return [...texts, ...rows.map(({ digest }) => digest)];
  }

  async #proveSome(
    names: readonly string[],
    { space, nonce }: Pick<ServiceQuestion, 'space' | 'nonce'>,
  ): Promise<CoverageEntry[]> {
    if (names.length === 0) return [];
    const texts = names.filter(isDigest);
    const held = await this.#rows.all<ProofRow>(
      MEMORY.recordsForProof,
      this.#tenant,
      space,
      names,
      texts.map(referenceOf),
      texts,
    );
    const found = new Map<string, ProofRow>();
    // If several records have the text, the oldest record proves it, because it is set last.
    for (const row of held.toReversed()) {
      if (row.text_digest !== null) found.set(row.text_digest, row);
      found.set(row.digest, row);
    }
    const lost = names.filter((name) => !found.has(name));
    const purged = lost.length === 0 ? new Set<string>() : await this.#purgedOf(lost, space);
    return names.map((digest) => {
      const row = found.get(digest);
      if (row === undefined) return { digest, state: purged.has(digest) ? 'purged' : 'unknown' };
      // A record with masked secrets is not the text of the prompt, so it must not let this text be left out.
      if (row.redactions > 0) return { digest, state: 'not_checked' };
      const { ref, bytes } = row;
      return { digest, state: 'durable', bytes: bytes.length, pop: proofOf(nonce, bytes), ref };
    });
  }

  async #purgedOf(names: readonly string[], space: string): Promise<ReadonlySet<string>> {
    const refs = new Map(names.filter(isDigest).map((name) => [referenceOf(name), name]));
    const rows = await this.#rows.all<{ digest: string; text_ref: string | null }>(
      MEMORY.purgedForProof,
      this.#tenant,
      space,
      names,
      [...refs.keys()],
    );
    return new Set(rows.flatMap((row) => [row.digest, refs.get(row.text_ref ?? '') ?? []].flat()));
  }

  #find(name: string, spaces: readonly number[]): Promise<RetrievedRow[]> {
    const named = recordNamed(name);
    return this.#rows.all(MEMORY.findRecords, this.#tenant, spaces, ...named, OBJECTS_MAX);
  }

  async #whyMissing(name: string, spaces: readonly number[]): Promise<MissingReason> {
    const [digest, ref, textRef] = recordNamed(name);
    const values = [this.#tenant, spaces, digest, ref, textRef] as const;
    const found = await this.#rows.get(MEMORY.wasPurged, ...values);
    return found === undefined ? 'unknown' : 'purged';
  }
}

function wholeOf({ bytes, message }: WholeRow): string {
  return textsOf(recordOfBytes(bytes))[message]?.text ?? '';
}

/**
 * The name of a record or text as four values of a statement, of which one or two are not null. A record has a digest
 * and a reference. A record of one text also has the digest and the reference of this text. Texts are indexed by their
 * references only, so the reference of a text accompanies its digest.
 */
type NameValues = readonly [
  digest: string | null,
  ref: string | null,
  textRef: string | null,
  textDigest: string | null,
];

function recordNamed(name: string): NameValues {
  if (isDigest(name)) return [null, null, referenceOf(name), name];
  if (name.startsWith('sha256:')) return [name, null, null, null];
  return name.startsWith('m_') ? [null, null, name, null] : [null, name, null, null];
}
