import type {
  CaptureItem,
  MemoryItem,
  Provenance,
  StoredObject,
} from '../../core/memory-api/contract.ts';
import {
  type ContentRecord,
  RECORD_BYTES_MAX,
  recordBytes,
  recordOfText,
  textOfRecord,
} from '../../core/memory-api/records.ts';
import {
  contentDigest,
  contentReference,
  type TextRole,
  textDigest,
  referenceOf,
} from '../../core/memory/reference.ts';
import { isSpace } from '../../core/request/space.ts';
import type {
  MemoryRecord,
  RecalledPassage,
  SpokenRecord,
  StoredRecord,
} from '../../ports/memory.ts';
import { isoTime, isTime } from '../../core/memory/times.ts';

/** Between the memory port's records and those of the memory API. */

/** As long as in the embedded store: a longer text is a pasted file. */
const TEXT_CHARS_MAX = 512 * 1024;
const SESSION_CHARS_MAX = 128;
const CLIENT_CHARS_MAX = 64;
const FINGERPRINT_CHARS_MAX = 128;
const BRANCH_CHARS_MAX = 256;

/** A text on its way to the service. */
export interface Outgoing {
  readonly space: string;
  /** The port's digest of the text. */
  readonly text: string;
  readonly item: CaptureItem;
}

/** Undefined for what the contract has no form for: no text, half a character, a wrong digest. */
export function outgoingRecord(record: MemoryRecord): Outgoing | undefined {
  const { role, text, space, digest, at, conversation, client } = record;
  const isWrong =
    (role === 'tool' ? text : text.trim()) === '' ||
    text.length > TEXT_CHARS_MAX ||
    !isSpace(space) ||
    !isTime(at) ||
    conversation === '' ||
    !Number.isSafeInteger(record.exchange) ||
    record.exchange < 0 ||
    digest !== textDigest(role, text);
  const content = recordOfText(role, text);
  const bytes = isWrong ? undefined : recordBytes(content);
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

/** An output has no place in a conversation: it belongs to the call, wherever that stands. */
function placeOf({ exchange, fingerprint, branch }: MemoryRecord) {
  return {
    position: exchange,
    fingerprint: fingerprint.slice(0, FINGERPRINT_CHARS_MAX),
    ...(branch === undefined ? {} : { branch: branch.slice(0, BRANCH_CHARS_MAX) }),
  };
}

/** Undefined when the item names no space of `spaces`: it was not asked for. */
export function passageIn(
  item: MemoryItem,
  spaces: readonly string[],
): RecalledPassage | undefined {
  const source = item.provenance[0];
  const space = source?.space ?? spaces[0];
  if (source === undefined || space === undefined || !spaces.includes(space)) return undefined;
  const role = source.role === 'assistant' ? 'assistant' : 'user';
  const digest = digestOf(item, role);
  return {
    ref: referenceOf(digest),
    digest,
    space,
    role,
    text: item.text,
    at: Date.parse(source.observed_at),
    client: source.client ?? '',
    score: item.score ?? 0,
  };
}

/** A listed record whose text came whole; undefined when it has to be fetched. */
export function recordInItem(item: MemoryItem): SpokenRecord | undefined {
  const source = item.provenance[0];
  if (item.verbatim !== true || source?.space === undefined) return undefined;
  const role = source.role === 'assistant' ? 'assistant' : 'user';
  return storedText({ source, space: source.space, role, text: item.text });
}

/** The service's description of a record must agree with its bytes; undefined when it does not. */
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
  const { role, said: text } = textOfRecord(object.record) ?? joinedTexts(object.record);
  return storedText({ source: object.provenance, space, role, text });
}

interface Told<Role extends TextRole> {
  readonly source: Provenance;
  readonly space: string;
  readonly role: Role;
  readonly text: string;
}

function storedText<Role extends TextRole>(told: Told<Role>): StoredRecord<Role> {
  const { source, space, role, text } = told;
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
  };
}

/** A record of several texts, which other clients of the service may store. */
function joinedTexts(record: ContentRecord): { role: TextRole; said: string } {
  if (record.k === 'exchange') {
    return { role: 'user', said: record.m.flatMap(({ t }) => t).join('\n\n') };
  }
  return { role: record.k === 'tool_output' ? 'tool' : 'user', said: record.t.join('\n\n') };
}

function digestOf(item: MemoryItem, role: 'user' | 'assistant'): string {
  const stated = item.verbatim === true ? undefined : item.provenance[0]?.text_digest;
  return stated ?? textDigest(role, item.text);
}
