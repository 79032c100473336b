import { createHmac } from 'node:crypto';
import { recordBytes, recordOfText } from '../memory-api/canonical.ts';
import type { TextRole } from '../memory/reference.ts';

/** Bytes of a nonce: as many as the hash has. */
export const NONCE_BYTES = 32;

/**
 * Proves to a caller who knows a text that svc has its UTF-8 bytes now: an HMAC-SHA256 in base64url with the
 * caller's fresh nonce as key. The nonce is hashed first, so the proof needs the text itself: no stored hash is
 * enough.
 */
export function proofOf(nonce: Uint8Array, text: string | Uint8Array): string {
  return createHmac('sha256', nonce).update(text).digest('base64url');
}

/**
 * Returns the bytes of a text that are proven: those of its canonical record, which are the same in every memory.
 * `role`: the speaker. Undefined for a text without valid UTF-8.
 */
export function textBytes(role: TextRole, text: string): Uint8Array | undefined {
  return recordBytes(recordOfText(role, text));
}

/** Returns the proof of a text; undefined for a text without valid UTF-8. */
export function textProof(nonce: Uint8Array, role: TextRole, text: string): string | undefined {
  const bytes = textBytes(role, text);
  return bytes === undefined ? undefined : proofOf(nonce, bytes);
}
