import { Buffer } from 'node:buffer';
import type { TextRole } from '../memory/reference.ts';
import type { ContentRecord } from './records.ts';
import { createHmac } from 'node:crypto';

/**
 * Writes canonical JSON (RFC 8785): equal values give the same bytes on every machine. Digests, proofs and
 * signatures cover these bytes.
 */

/** Returns the JSON; undefined for a value that has none, such as half a surrogate pair, NaN or a function. */
export function canonicalJson(value: unknown): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return Number.isFinite(value) ? JSON.stringify(value) : undefined;
  if (typeof value === 'string') return isWellFormed(value) ? JSON.stringify(value) : undefined;
  if (Array.isArray(value)) return joined(value.map(canonicalJson), '[', ']');
  if (typeof value !== 'object') return undefined;
  // RFC 8785 sorts names by UTF-16 units, as toSorted() does.
  const names = Object.keys(value).toSorted();
  const parts = names.map((name) => {
    const key = canonicalJson(name);
    const member = canonicalJson(Reflect.get(value, name));
    return key === undefined || member === undefined ? undefined : `${key}:${member}`;
  });
  return joined(parts, '{', '}');
}

/**
 * Says whether every character of a text has UTF-8 bytes. Half a surrogate pair has none, so no memory can prove it.
 */
export function isWellFormed(value: string): boolean {
  return !/\p{Surrogate}/u.test(value);
}

function joined(parts: readonly (string | undefined)[], open: string, close: string) {
  return parts.includes(undefined) ? undefined : `${open}${parts.join(',')}${close}`;
}

/** Makes a record of a single text by a user, an assistant or a tool. */
export function recordOfText(role: TextRole, said: string): ContentRecord {
  return role === 'tool'
    ? { k: 'tool_output', v: 1, t: [said] }
    : { k: 'exchange', v: 1, m: [{ r: role, t: [said] }] };
}

/** Returns a record's bytes; undefined if a text has half a surrogate pair. No memory can store such a text. */
export function recordBytes(record: ContentRecord): Buffer | undefined {
  const json = canonicalJson(record);
  return json === undefined ? undefined : Buffer.from(json, 'utf8');
}

/** Bytes of a nonce: as many as the hash has. */
export const NONCE_BYTES = 32;

/**
 * Returns the proof that a memory has `text`: the HMAC-SHA256 of its bytes (UTF-8 for a string) in base64url. The key
 * is a nonce that svc chooses anew for each proof, so a memory cannot answer with a hash that it stored before.
 */
export function proofOf(nonce: Uint8Array, text: string | Uint8Array): string {
  return createHmac('sha256', nonce).update(text).digest('base64url');
}

/**
 * Returns the bytes that a proof of a text covers: those of its canonical record, which are the same in every memory.
 * `role`: the speaker. Undefined for a text with half a surrogate pair.
 */
export function textBytes(role: TextRole, text: string): Uint8Array | undefined {
  return recordBytes(recordOfText(role, text));
}

/** Returns the proof of a text (see proofOf); undefined if the text has half a surrogate pair and so no UTF-8 bytes. */
export function textProof(nonce: Uint8Array, role: TextRole, text: string): string | undefined {
  const bytes = textBytes(role, text);
  return bytes === undefined ? undefined : proofOf(nonce, bytes);
}
