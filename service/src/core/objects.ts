import { type MemoryRecord, RECORD_CHARS_MAX } from '../../../src/core/memory/record.ts';
import { contentDigest, contentReference, textDigest } from '../../../src/core/memory/reference.ts';
import type { CaptureItem } from '../../../src/core/memory-api/contract.ts';
import { recordBytes } from '../../../src/core/memory-api/canonical.ts';
import {
  type ContentRecord,
  RECORD_BYTES_MAX,
  textOfRecord,
} from '../../../src/core/memory-api/records.ts';

/** Prepares records of the memory API for the store: checks them, and extracts the texts for the search. */

export type ObjectKind = 'exchange' | 'tool_output' | 'note';

/** A text of a record, in the form in which it is searched. */
export interface SpokenText {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

export interface NewObject {
  readonly digest: string;
  readonly ref: string;
  readonly kind: ObjectKind;
  /** The canonical bytes of the record. The digest and every proof are computed from them. */
  readonly bytes: Uint8Array;
  /** Texts for the search; empty if the record is not searched. */
  readonly texts: readonly SpokenText[];
  /** The digest of the text, for a record that consists of one text: see src/core/memory-api/records.ts. */
  readonly textDigest?: string;
  /** The conversation; '' if the client named none. */
  readonly session: string;
  /** The client program that the user ran; '' if unknown. */
  readonly client: string;
  readonly fingerprint: string;
  readonly branch?: string;
  readonly observedAt: number;
  readonly position: number;
  readonly dialect?: string;
  readonly toolName?: string;
  /** The number of secrets that the client masked before it made the record. */
  readonly redactions: number;
  /** As in `MemoryRecord` (src/core/memory/record.ts). It applies to every text of the record. */
  readonly source?: MemoryRecord['source'];
  /** As in `MemoryRecord`. */
  readonly isTimed?: true;
  /** As in `MemoryRecord`. Only in a record of one text. */
  readonly lastFrom?: number;
}

export type Refusal = 'digest_mismatch' | 'invalid_record' | 'too_large';

/** Converts an item of a capture. Computes the digest again, because a client's own digest is not trusted. */
export function objectOfItem(item: CaptureItem, session: string): NewObject | Refusal {
  const { record } = item;
  const bytes = recordBytes(record);
  if (bytes === undefined) return 'invalid_record';
  if (bytes.length > RECORD_BYTES_MAX) return 'too_large';
  if (contentDigest(bytes) !== item.digest || bytes.length !== item.bytes) return 'digest_mismatch';
  const texts = textsOf(record);
  if (texts.some(({ text }) => text.length > RECORD_CHARS_MAX)) return 'too_large';
  if (record.k !== 'tool_output' && texts.length === 0) return 'invalid_record';
  const one = textOfRecord(record);
  return {
    digest: item.digest,
    ref: contentReference(record.k, item.digest),
    kind: record.k,
    bytes,
    texts,
    ...(one === undefined ? {} : { textDigest: textDigest(one.role, one.said) }),
    session: item.session_id ?? session,
    client: item.client ?? '',
    fingerprint: item.fingerprint ?? '',
    ...(item.branch === undefined ? {} : { branch: item.branch }),
    observedAt: Date.parse(item.observed_at),
    position: item.position ?? 0,
    ...(item.dialect === undefined ? {} : { dialect: item.dialect }),
    ...(item.tool_name === undefined ? {} : { toolName: item.tool_name }),
    redactions: item.redactions ?? 0,
    ...(item.source === undefined ? {} : { source: item.source }),
    ...(item.timed === true ? { isTimed: true } : {}),
    ...(one !== undefined && item.last_from !== undefined && item.last_from <= one.said.length
      ? { lastFrom: item.last_from }
      : {}),
  };
}

/** Returns the texts of a record that are searched. A tool output has none, because it is fetched by its reference. */
export function textsOf(record: ContentRecord): readonly SpokenText[] {
  const spoken: SpokenText[] =
    record.k === 'exchange'
      ? record.m.map(({ r, t }) => ({ role: r, text: t.join('\n\n') }))
      : record.k === 'note'
        ? [{ role: 'user', text: record.t.join('\n\n') }]
        : [];
  return spoken.filter(({ text }) => text.trim() !== '');
}
