import { Buffer } from 'node:buffer';
import type { TextRole } from '../memory/reference.ts';
import type { ContentRecord } from './records.ts';

/**
 * Canonical JSON (RFC 8785): one value, one sequence of bytes, on every machine. Digests, proofs and
 * signatures are made over these bytes.
 */

/** Undefined for what has no canonical form: half a surrogate pair, NaN, a function. */
export function canonicalJson(value: unknown): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : undefined;
  if (typeof value === 'string') return isWellFormed(value) ? JSON.stringify(value) : undefined;
  if (Array.isArray(value)) return joined(value.map(canonicalJson), '[', ']');
  if (typeof value !== 'object') return undefined;
  // Names are sorted by UTF-16 units, which is what a sort of strings does.
  const names = Object.keys(value).toSorted();
  const parts = names.map((name) => {
    const key = canonicalJson(name);
    const member = canonicalJson(Reflect.get(value, name));
    return key === undefined || member === undefined ? undefined : `${key}:${member}`;
  });
  return joined(parts, '{', '}');
}

/** Every character has UTF-8 bytes of its own. */
export function isWellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

function joined(parts: readonly (string | undefined)[], open: string, close: string) {
  return parts.includes(undefined) ? undefined : `${open}${parts.join(',')}${close}`;
}

/** The text of one person or program, as a record of one text. */
export function recordOfText(role: TextRole, said: string): ContentRecord {
  return role === 'tool'
    ? { k: 'tool_output', v: 1, t: [said] }
    : { k: 'exchange', v: 1, m: [{ r: role, t: [said] }] };
}

/** Undefined when a text has no UTF-8 form: such a record can be neither captured nor proven. */
export function recordBytes(record: ContentRecord): Buffer | undefined {
  const json = canonicalJson(record);
  return json === undefined ? undefined : Buffer.from(json, 'utf8');
}
