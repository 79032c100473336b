import { recordBytes, recordOfText } from '../../../src/core/memory-api/canonical.ts';
import {
  contentDigest,
  contentReference,
  type TextRole,
  textDigest,
} from '../../../src/core/memory/reference.ts';
import type { ItemFilter, NewObject, ServiceQuestion } from '../../src/ports/service-store.ts';

/** What a service's store is given, with everything that a test does not care about filled in. */

export const SPACE = 'project/api-0123456789';

export function objectOf(
  text: string,
  { role = 'user', ...more }: Partial<NewObject> & { readonly role?: TextRole } = {},
): NewObject {
  const record = recordOfText(role, text);
  const bytes = recordBytes(record) ?? Buffer.alloc(0);
  const digest = contentDigest(bytes);
  return {
    digest,
    ref: contentReference(record.k, digest),
    kind: record.k,
    bytes,
    texts: role === 'tool' ? [] : [{ role, text }],
    textDigest: textDigest(role, text),
    session: 's_1',
    client: 'test',
    fingerprint: '',
    observedAt: 1000,
    position: 0,
    redactions: 0,
    ...more,
  };
}

export function itemsOf(more: Partial<ItemFilter> = {}): ItemFilter {
  return {
    spaces: { space: SPACE },
    limit: 100,
    offset: 0,
    kind: undefined,
    role: undefined,
    session: undefined,
    sourceId: undefined,
    refs: undefined,
    since: undefined,
    until: undefined,
    words: undefined,
    ...more,
  };
}

export function questionTo(more: Partial<ServiceQuestion> = {}): ServiceQuestion {
  return {
    space: SPACE,
    otherSpaces: [],
    humanText: undefined,
    assistantText: '',
    excludeDigests: [],
    tokensMax: 512,
    itemsMax: 20,
    kinds: undefined,
    scoreMin: 0,
    candidates: [],
    nonce: new Uint8Array(32),
    ifGeneration: undefined,
    deadlineAt: Infinity,
    now: 1000,
    ...more,
  };
}

let count = 0;

export function newPurgeId(): string {
  count += 1;
  return `prg_${String(count).padStart(26, '0')}`;
}
