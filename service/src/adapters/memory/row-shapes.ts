import { ITEM_CHARS_MAX } from '../../../../src/core/memory-api/limits.ts';
import { saidIn } from '../../../../src/core/memory-api/record-items.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import { termsOf } from '../../../../src/core/recall/terms.ts';
import type { RecalledPassage } from '../../../../src/ports/memory.ts';
import type {
  ObjectKind,
  Origin,
  Purge,
  ServiceItem,
  ServiceQuestion,
} from '../../ports/service-store.ts';
import { readerOf } from '../control/facts.ts';

/** Converts stored texts to the items that people and models see, for every database. */

export interface ItemFacts {
  /** The number of its record. */
  readonly object: number;
  /** Which of the record's texts. */
  readonly message: number;
  readonly kind: ObjectKind;
  readonly role: ServiceItem['role'];
  readonly createdAt: number;
  readonly origin: Origin;
}

/** A text, with the record that it is of. */
export interface ItemRow extends OriginRow {
  readonly record_id: number;
  readonly message: number;
  readonly kind: ObjectKind;
  readonly created_at: number;
  readonly role: 'user' | 'assistant';
}

export function factsOf(row: ItemRow): ItemFacts {
  const { record_id: object, message, kind, role, created_at: createdAt } = row;
  return { object, message, kind, role, createdAt, origin: originOf(row) };
}

export interface SaidItem {
  readonly facts: ItemFacts;
  readonly whole: string;
}

/** Returns an item for a list, with the beginning of a long text. */
export function listedItem(facts: ItemFacts, whole: string): ServiceItem {
  const text = beginningOf(whole);
  return { ...itemOf(facts, text), isVerbatim: isWhole(facts, text, whole) };
}

/** Returns an output's item; undefined if it lacks one of the terms. */
export function outputItem(
  facts: Pick<ItemFacts, 'object' | 'createdAt' | 'origin'>,
  bytes: Uint8Array,
  terms: readonly string[],
): ServiceItem | undefined {
  const whole = saidIn(recordOfBytes(bytes)).text;
  const held = new Set(terms.length === 0 ? [] : termsOf(whole));
  if (!terms.every((term) => held.has(term))) return undefined;
  return listedItem({ ...facts, message: 0, kind: 'tool_output', role: 'tool' }, whole);
}

/** A text with the passage of it that was found. */
export interface FoundText extends SaidItem {
  readonly passage: RecalledPassage;
}

/** Returns the items that the question allows, each with its own id, and whether there were more. */
export function recalledItems(
  found: readonly FoundText[],
  { kinds, scoreMin, itemsMax }: Pick<ServiceQuestion, 'kinds' | 'scoreMin' | 'itemsMax'>,
): { readonly items: ServiceItem[]; readonly isTruncated: boolean } {
  const seen = new Map<string, number>();
  const items = found.map(({ facts, whole, passage }): ServiceItem => {
    const item = itemOf(facts, passage.text);
    const place = seen.get(item.itemId) ?? 0;
    seen.set(item.itemId, place + 1);
    return {
      ...item,
      itemId: place === 0 ? item.itemId : `${item.itemId}.${place}`,
      isVerbatim: isWhole(facts, passage.text, whole),
      score: passage.score / (1 + passage.score),
    };
  });
  const allowed = items.filter(
    ({ kind, score = 0 }) => (kinds?.includes(kind) ?? true) && score >= scoreMin,
  );
  return { items: allowed.slice(0, itemsMax), isTruncated: allowed.length > itemsMax };
}

/** Returns the record of an item's id; -1, which no record has, for an invalid id. */
export function objectOfItem(itemId: string): number {
  const digits = /^it_(\d{1,15})(?:\.\d{1,5}){0,2}$/.exec(itemId)?.[1];
  return digits === undefined ? -1 : Number(digits);
}

/** Makes an item. Its id is `it_`, the record's number, its text, and in a recall the passage. */
function itemOf({ object, message, kind, role, createdAt, origin }: ItemFacts, text: string) {
  return { itemId: `it_${object}.${message}`, kind, role, text, createdAt, origin };
}

function isWhole({ origin }: ItemFacts, text: string, whole: string): boolean {
  return origin.textDigest !== undefined && text === whole;
}

// Never with half a surrogate pair at its end.
function beginningOf(text: string): string {
  if (text.length <= ITEM_CHARS_MAX) return text;
  return text.slice(0, ITEM_CHARS_MAX).replace(/[\ud800-\udbff]$/, '');
}

/** A record's origin as columns, for both engines. */
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
}

export function originOf(row: OriginRow): Origin {
  return {
    digest: row.digest,
    ref: row.ref,
    space: row.space,
    ...(row.text_digest === null ? {} : { textDigest: row.text_digest }),
    sourceId: sourceIdOf(row.source),
    session: row.session,
    client: row.client,
    observedAt: row.observed_at,
    position: row.position,
    fingerprint: row.fingerprint,
    ...(row.branch === null ? {} : { branch: row.branch }),
    ...(row.mark === null ? {} : { source: row.mark }),
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

/** The row of a purge, for both engines. */
export const purgeOf = readerOf<Purge>({ id: 'purgeId' }, ['scope']);
