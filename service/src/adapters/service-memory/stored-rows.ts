import { saidIn } from '../../../../src/core/memory-api/record-items.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import type {
  RecalledPassage,
  SpokenRecord,
  StoredRecord,
} from '../../../../src/core/memory/record.ts';
import { referenceOf, type TextRole, textDigest } from '../../../../src/core/memory/reference.ts';
import type { Origin, ServiceItem, StoredObject } from '../../ports/service-store.ts';

/** Rows of a service's store as the memory port has them. */

export function passageOf({
  origin,
  role,
  text,
  score = 0,
  isVerbatim,
}: ServiceItem): RecalledPassage {
  const speaker = role === 'assistant' ? role : 'user';
  const stated = isVerbatim ? undefined : origin.textDigest;
  const digest = stated ?? textDigest(speaker, text);
  return {
    ref: referenceOf(digest),
    digest,
    space: origin.space,
    role: speaker,
    text,
    at: origin.observedAt,
    client: origin.client,
    ...(origin.source === undefined ? {} : { source: origin.source }),
    score,
  };
}

/** Undefined when the text came cut, or is one of several. */
export function recordOfItem({
  origin,
  role,
  text,
  isVerbatim,
}: ServiceItem): SpokenRecord | undefined {
  if (!isVerbatim || role === 'tool') return undefined;
  return storedRecord(origin, { role, text });
}

export function recordOfObject({ origin, bytes }: StoredObject): StoredRecord {
  return storedRecord(origin, saidIn(recordOfBytes(bytes)));
}

function storedRecord<Role extends TextRole>(
  origin: Origin,
  { role, text }: { readonly role: Role; readonly text: string },
): StoredRecord<Role> {
  const digest = textDigest(role, text);
  return {
    digest,
    ref: referenceOf(digest),
    space: origin.space,
    role,
    text,
    conversation: origin.session === '' ? origin.sourceId : origin.session,
    client: origin.client,
    at: origin.observedAt,
    fingerprint: origin.fingerprint,
    exchange: origin.position,
    ...(origin.branch === undefined ? {} : { branch: origin.branch }),
    ...(origin.source === undefined ? {} : { source: origin.source }),
  };
}
