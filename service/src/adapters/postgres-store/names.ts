import { isDigest, referenceOf } from '../../../../src/core/memory/reference.ts';

/** The names of a record as values of a statement: see statements/memory.ts. */

const TEXT_REFERENCE_START = /^m_[a-z2-7]{0,15}$/;
/** No character of a reference comes after it. */
const AFTER_ALL = '{';

export type NameValues = readonly [
  digest: string | null,
  ref: string | null,
  textRefFrom: string | null,
  textRefTo: string | null,
  textDigest: string | null,
];

export function recordNamed(name: string): NameValues {
  if (isDigest(name)) return [null, null, referenceOf(name), referenceOf(name), name];
  if (TEXT_REFERENCE_START.test(name)) return [null, null, name, name + AFTER_ALL, null];
  if (name.startsWith('sha256:')) return [name, null, null, null, null];
  if (name.startsWith('m_')) return [null, null, name, name, null];
  return [null, name, null, null, null];
}

/** Digest, reference, reference of the text. */
export function purgedNamed(name: string): readonly [string | null, string | null, string | null] {
  const known = isDigest(name) ? referenceOf(name) : name;
  if (known.startsWith('sha256:')) return [known, null, null];
  return known.startsWith('m_') ? [null, null, known] : [null, known, null];
}
