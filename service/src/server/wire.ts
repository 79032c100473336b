import type {
  CoverageEntry,
  MemoryItem,
  Provenance,
  Source,
  StoredObject as WireObject,
  PurgeReceipt,
} from '../../../src/core/memory-api/contract.ts';
import { recordOfBytes } from '../../../src/core/memory-api/records.ts';
import { estimateTextTokens } from '../../../src/core/bytes/tokens.ts';
import type {
  Coverage,
  Origin,
  Purge,
  ServiceItem,
  ServiceSource,
  StoredObject,
} from '../ports/service-store.ts';
import { isoTime } from '../../../src/core/memory/times.ts';

/** Converts rows of the store to the contract's form. */

export function itemOf(item: ServiceItem): MemoryItem {
  return {
    item_id: item.itemId,
    kind: item.kind,
    text: item.text,
    verbatim: item.isVerbatim,
    tokens: estimateTextTokens(item.text),
    ...(item.score === undefined ? {} : { score: item.score }),
    created_at: isoTime(item.createdAt),
    provenance: [provenanceOf(item.origin, item.role)],
  };
}

export function coverageOf(coverage: Coverage, items: readonly ServiceItem[]): CoverageEntry {
  const ids = items
    .filter(({ origin }) => origin.digest === coverage.digest)
    .map(({ itemId }) => itemId);
  return ids.length === 0 ? coverage : { ...coverage, item_ids: ids };
}

export function objectOf({ kind, bytes, toolName, origin }: StoredObject): WireObject {
  return {
    ref: origin.ref,
    digest: origin.digest,
    bytes: bytes.length,
    record: recordOfBytes(bytes),
    ...(toolName === undefined ? {} : { tool_name: toolName }),
    provenance: provenanceOf(origin, kind === 'tool_output' ? 'tool' : undefined),
  };
}

function provenanceOf(origin: Origin, role: Provenance['role']): Provenance {
  return {
    digest: origin.digest,
    ref: origin.ref,
    space: origin.space,
    ...(origin.textDigest === undefined ? {} : { text_digest: origin.textDigest }),
    source_id: origin.sourceId,
    session_id: origin.session === '' ? null : origin.session,
    ...(role === undefined ? {} : { role }),
    ...(origin.client === '' ? {} : { client: origin.client }),
    observed_at: isoTime(origin.observedAt),
    position: origin.position,
    ...(origin.fingerprint === '' ? {} : { fingerprint: origin.fingerprint }),
    ...(origin.branch === undefined ? {} : { branch: origin.branch }),
    ...(origin.source === undefined ? {} : { source: origin.source }),
  };
}

export function sourceOf(source: ServiceSource): Source {
  return {
    source_id: source.sourceId,
    kind: source.session === '' ? 'manual' : 'conversation',
    session_id: source.session === '' ? null : source.session,
    ...(source.client === '' ? {} : { client: source.client }),
    first_seen: isoTime(source.firstSeen),
    last_seen: isoTime(source.lastSeen),
    records: source.records,
    bytes: source.bytes,
  };
}

export function receiptOf(purge: Purge): PurgeReceipt {
  return {
    object: 'svc.purge_receipt',
    purge_id: purge.purgeId,
    space: purge.space,
    scope: purge.scope,
    state: purge.state,
    counts: { records: purge.records, items: purge.items, bytes: purge.bytes },
    generation_before: purge.generationBefore,
    generation_after: purge.generationAfter,
    requested_by: purge.requestedBy,
    requested_at: isoTime(purge.requestedAt),
    erased_at: purge.erasedAt === undefined ? null : isoTime(purge.erasedAt),
  };
}
