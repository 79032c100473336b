import { isDigest, referenceOf } from '../../../../src/core/memory/reference.ts';

/**
 * A record has several names: the digest and the reference of its bytes and, where it holds one text
 * and no more, the digest and the reference of that text. The reference of a text is the beginning of
 * its digest, and the tables have an index of it.
 */

const TEXT_REFERENCE_START = /^m_[a-z2-7]{0,15}$/;

export interface NameCondition {
  readonly where: string;
  readonly values: readonly string[];
}

/** A condition on o, the table of records. */
export function recordNamed(name: string): NameCondition {
  if (isDigest(name)) {
    return { where: 'o.text_ref = ? AND o.text_digest = ?', values: [referenceOf(name), name] };
  }
  // No character of a reference comes after the brace.
  if (TEXT_REFERENCE_START.test(name)) {
    return { where: 'o.text_ref >= ? AND o.text_ref < ?', values: [name, `${name}{`] };
  }
  return { where: `o.${columnOf(name)} = ?`, values: [name] };
}

/** A condition on p, the table of what was purged. */
export function purgedNamed(name: string): NameCondition {
  const known = isDigest(name) ? referenceOf(name) : name;
  return { where: `p.${columnOf(known)} = ?`, values: [known] };
}

function columnOf(name: string): 'digest' | 'text_ref' | 'ref' {
  if (name.startsWith('sha256:')) return 'digest';
  return name.startsWith('m_') ? 'text_ref' : 'ref';
}
