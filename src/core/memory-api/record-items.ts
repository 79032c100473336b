import type { CaptureItem, MemoryItem, Provenance, StoredObject } from './contract.ts';
import {
  BRANCH_CHARS_MAX,
  CLIENT_CHARS_MAX,
  FINGERPRINT_CHARS_MAX,
  SESSION_CHARS_MAX,
} from './limits.ts';
import { recordBytes, recordOfText } from './canonical.ts';
import { type ContentRecord, RECORD_BYTES_MAX, textOfRecord } from './records.ts';
import {
  contentDigest,
  contentReference,
  type TextRole,
  textDigest,
  referenceOf,
} from '../memory/reference.ts';
import {
  isStorable,
  type MemoryRecord,
  type RecalledPassage,
  type SpokenRecord,
  type StoredRecord,
} from '../memory/record.ts';
import { isSpace } from '../request/space.ts';
import { isoTime } from '../memory/times.ts';

/**
 * Converts records to and from the memory API's forms: the items of a capture, and the items and objects of an answer.
 * An item of the memory API is one memory, not an element of `messages`. The client of a service and the service itself
 * use the same code, so that both make the same record of a text.
 */

/** A record as an item of a capture. */
export interface Outgoing {
  readonly space: string;
  /** The textDigest() of the record, by which the proxy names it. */
  readonly text: string;
  readonly item: CaptureItem;
}

/** Returns the record as an item; undefined if a field, the space or the bytes are such that no service stores it. */
export function outgoingRecord(record: MemoryRecord): Outgoing | undefined {
  const { role, text, space, digest, at, conversation, client } = record;
  const content = recordOfText(role, text);
  const bytes = isStorable(record) && isSpace(space) ? recordBytes(content) : undefined;
  if (bytes === undefined || bytes.length > RECORD_BYTES_MAX) return undefined;
  const item: CaptureItem = {
    digest: contentDigest(bytes),
    bytes: bytes.length,
    record: content,
    observed_at: isoTime(at),
    session_id: conversation.slice(0, SESSION_CHARS_MAX),
    client: client.slice(0, CLIENT_CHARS_MAX),
    ...(role === 'tool' ? {} : placeOf(record)),
  };
  return { space, text: digest, item };
}

/** Returns the members that describe the place of a text in its conversation. A tool's output has none. */
function placeOf({ exchange, fingerprint, branch, source, lastFrom, isTimed }: MemoryRecord) {
  return {
    ...(source === undefined ? {} : { source }),
    ...(lastFrom === undefined ? {} : { last_from: lastFrom }),
    ...(isTimed === true ? { timed: true } : {}),
    position: exchange,
    fingerprint: fingerprint.slice(0, FINGERPRINT_CHARS_MAX),
    ...(branch === undefined ? {} : { branch: branch.slice(0, BRANCH_CHARS_MAX) }),
  };
}

/** Returns a recalled item as a passage; undefined without provenance, or if its space is not one of `spaces`. */
export function passageIn(
  item: MemoryItem,
  spaces: readonly string[],
): RecalledPassage | undefined {
  const source = item.provenance[0];
  const space = source?.space ?? spaces[0];
  if (source === undefined || space === undefined || !spaces.includes(space)) return undefined;
  const role = source.role === 'assistant' ? 'assistant' : 'user';
  const stated = item.verbatim === true ? undefined : source.text_digest;
  const digest = stated ?? textDigest(role, item.text);
  return {
    ref: referenceOf(digest),
    digest,
    space,
    role,
    text: item.text,
    at: Date.parse(source.observed_at),
    client: source.client ?? '',
    ...(source.source === undefined ? {} : { source: source.source }),
    score: item.score ?? 0,
  };
}

/** Returns the record of a listed item; undefined if the item does not have the whole text. */
export function recordInItem(item: MemoryItem): SpokenRecord | undefined {
  const source = item.provenance[0];
  if (item.verbatim !== true || source?.space === undefined) return undefined;
  const role = source.role === 'assistant' ? 'assistant' : 'user';
  return storedText(source, source.space, { role, text: item.text });
}

/** Returns an object's record; undefined without a space, or if the stated digest, length or reference is wrong. */
export function recordInObject(object: StoredObject): StoredRecord | undefined {
  const bytes = recordBytes(object.record);
  const { space } = object.provenance;
  if (bytes === undefined || space === undefined) return undefined;
  const digest = contentDigest(bytes);
  const isTrue =
    digest === object.digest &&
    bytes.length === object.bytes &&
    contentReference(object.record.k, digest) === object.ref;
  if (!isTrue) return undefined;
  return storedText(object.provenance, space, saidIn(object.record));
}

function storedText<Role extends TextRole>(
  source: Provenance,
  space: string,
  { role, text }: { readonly role: Role; readonly text: string },
): StoredRecord<Role> {
  const digest = textDigest(role, text);
  return {
    digest,
    ref: referenceOf(digest),
    space,
    role,
    text,
    conversation: source.session_id ?? source.source_id,
    client: source.client ?? '',
    at: Date.parse(source.observed_at),
    fingerprint: source.fingerprint ?? '',
    exchange: source.position ?? 0,
    ...(source.branch === undefined ? {} : { branch: source.branch }),
    ...(source.source === undefined ? {} : { source: source.source }),
    ...(source.last_from === undefined ? {} : { lastFrom: source.last_from }),
  };
}

/** Returns the text of a record. If another client has stored several texts in it, this joins them. */
export function saidIn(record: ContentRecord): { role: TextRole; text: string } {
  const one = textOfRecord(record);
  if (one !== undefined) return { role: one.role, text: one.said };
  const texts = record.k === 'exchange' ? record.m.flatMap(({ t }) => t) : record.t;
  return { role: record.k === 'tool_output' ? 'tool' : 'user', text: texts.join('\n\n') };
}
