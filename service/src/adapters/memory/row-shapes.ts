import { estimateTextTokens } from '../../../../src/core/bytes/tokens.ts';
import { isoTime } from '../../../../src/core/memory/times.ts';
import type {
  MemoryItem,
  Provenance,
  PurgeReceipt,
  PurgeScope,
} from '../../../../src/core/memory-api/contract.ts';
import { ITEM_CHARS_MAX } from '../../../../src/core/memory-api/limits.ts';
import { saidIn } from '../../../../src/core/memory-api/record-items.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { termsOf } from '../../../../src/core/recall/terms.ts';
import type { RecalledPassage } from '../../../../src/ports/memory.ts';
import type { ObjectKind, ServiceQuestion } from '../../ports/service-store.ts';

/** Converts rows of SQLite and PostgreSQL to the forms of the memory contract. */

export type ItemFacts = Omit<MemoryItem, 'text' | 'tokens' | 'verbatim' | 'score'>;

/** A row of a text, with the facts of its record. */
export interface ItemRow extends OriginRow {
  readonly record_id: number;
  /** The index of the text in its record. */
  readonly message: number;
  readonly kind: ObjectKind;
  readonly created_at: number;
  readonly role: 'user' | 'assistant';
}

type SaidRow = Omit<ItemRow, 'role'> & { readonly role: Provenance['role'] };

/** Returns the item of a row, without its text. The item's id names the record's number and the text's index in it. */
export function factsOf(row: SaidRow): ItemFacts {
  return {
    item_id: `it_${row.record_id}.${row.message}`,
    kind: row.kind,
    created_at: isoTime(row.created_at),
    provenance: [provenanceOf(row, row.role)],
  };
}

export interface SaidItem {
  readonly facts: ItemFacts;
  readonly whole: string;
}

/** Returns an item for a list, which shows only the beginning of a long text. */
export function listedItem(facts: ItemFacts, whole: string): MemoryItem {
  return itemOf({ facts, whole }, beginningOf(whole));
}

/** Returns the item of a tool output; undefined if it lacks one of the terms. */
export function outputItem(
  row: Omit<ItemRow, 'message' | 'kind' | 'role'> & { readonly bytes: Uint8Array },
  terms: readonly string[],
): MemoryItem | undefined {
  const whole = saidIn(recordOfBytes(row.bytes)).text;
  const held = new Set(terms.length === 0 ? [] : termsOf(whole));
  if (!terms.every((term) => held.has(term))) return undefined;
  return listedItem(factsOf({ ...row, message: 0, kind: 'tool_output', role: 'tool' }), whole);
}

/** A text with the passage of it that was found. */
export interface FoundText extends SaidItem {
  readonly passage: RecalledPassage;
}

/** Returns the items that the question allows, and whether there are more. Passages of a text get different ids. */
export function recalledItems(
  found: readonly FoundText[],
  { kinds, scoreMin, itemsMax }: Pick<ServiceQuestion, 'kinds' | 'scoreMin' | 'itemsMax'>,
): { readonly items: MemoryItem[]; readonly isTruncated: boolean } {
  const seen = new Map<string, number>();
  const items = found.map(({ passage, ...said }): MemoryItem => {
    const { item_id: id } = said.facts;
    const place = seen.get(id) ?? 0;
    seen.set(id, place + 1);
    return {
      ...itemOf(said, passage.text),
      item_id: place === 0 ? id : `${id}.${place}`,
      score: passage.score / (1 + passage.score),
    };
  });
  const allowed = items.filter(
    ({ kind, score = 0 }) => (kinds?.includes(kind) ?? true) && score >= scoreMin,
  );
  return { items: allowed.slice(0, itemsMax), isTruncated: allowed.length > itemsMax };
}

/** Returns the number of the record in an item's id; -1, which no record has, for an invalid id. */
export function objectOfItem(itemId: string): number {
  const digits = /^it_(\d{1,15})(?:\.\d{1,5}){0,2}$/.exec(itemId)?.[1];
  return digits === undefined ? -1 : Number(digits);
}

/** Makes an item that shows `text`. The item is verbatim if its record consists of exactly this text. */
function itemOf({ facts, whole }: SaidItem, text: string): MemoryItem {
  const isWhole = facts.provenance[0]?.text_digest !== undefined && text === whole;
  return { ...facts, text, verbatim: isWhole, tokens: estimateTextTokens(text) };
}

/** Cuts a text to its beginning, never within a surrogate pair. */
function beginningOf(text: string): string {
  if (text.length <= ITEM_CHARS_MAX) return text;
  return text.slice(0, ITEM_CHARS_MAX).replace(/[\ud800-\udbff]$/, '');
}

/** The columns of a record and its origin, which SQLite and PostgreSQL share. */
export interface OriginRow {
  readonly digest: string;
  readonly ref: string;
  readonly space: string;
  readonly text_digest: string | null;
  readonly source: number;
  readonly session: string;
  readonly client: string;
  readonly observed_at: number;
  readonly position: number;
  readonly fingerprint: string;
  readonly branch: string | null;
  readonly mark: 'unverified' | null;
  readonly last_from: number | null;
}

export function provenanceOf(row: OriginRow, role: Provenance['role']): Provenance {
  return {
    digest: row.digest,
    ref: row.ref,
    space: row.space,
    ...(row.text_digest === null ? {} : { text_digest: row.text_digest }),
    source_id: sourceIdOf(row.source),
    session_id: row.session === '' ? null : row.session,
    ...(role === undefined ? {} : { role }),
    ...(row.client === '' ? {} : { client: row.client }),
    observed_at: isoTime(row.observed_at),
    position: row.position,
    ...(row.fingerprint === '' ? {} : { fingerprint: row.fingerprint }),
    ...(row.branch === null ? {} : { branch: row.branch }),
    ...(row.mark === null ? {} : { source: row.mark }),
    ...(row.last_from === null ? {} : { last_from: row.last_from }),
  };
}

const SOURCE_START = 'src_';

export function sourceIdOf(id: number): string {
  return `${SOURCE_START}${id}`;
}

/** Returns a source's number; -1, which no source has, for an invalid id. */
export function sourceNumber(sourceId: string): number {
  const digits = /^src_(\d{1,15})$/.exec(sourceId)?.[1];
  return digits === undefined ? -1 : Number(digits);
}

export interface PurgeRow extends Pick<
  PurgeReceipt,
  'space' | 'state' | 'generation_before' | 'generation_after'
> {
  readonly id: string;
  readonly scope: string;
  readonly records: number;
  readonly items: number;
  readonly bytes: number;
  readonly requested_by: string;
  readonly requested_at: number;
  readonly erased_at: number | null;
}

export function purgeOf(row: PurgeRow): PurgeReceipt {
  const { id, scope, records, items, bytes, requested_at: at, erased_at: erasedAt } = row;
  return {
    object: 'svc.purge_receipt',
    purge_id: id,
    space: row.space,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only a checked scope is stored.
    scope: JSON.parse(scope) as PurgeScope,
    state: row.state,
    counts: { records, items, bytes },
    generation_before: row.generation_before,
    generation_after: row.generation_after,
    requested_by: row.requested_by,
    requested_at: isoTime(at),
    erased_at: erasedAt === null ? null : isoTime(erasedAt),
  };
}
