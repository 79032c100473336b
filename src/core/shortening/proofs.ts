import { createHmac } from 'node:crypto';
import { recordBytes, recordOfText } from '../memory-api/canonical.ts';
import { type TextRole } from '../memory/reference.ts';

/** Bytes of a nonce: as many as the hash has. */
export const NONCE_BYTES = 32;

/**
 * Proves to a caller that knows the text that svc has its UTF-8 bytes now. The proof is an
 * HMAC-SHA256 with the caller's fresh nonce as its key, base64url. The nonce comes first, so only
 * the text itself can answer: no stored hash and no half-finished hash can.
 */
export function proofOf(nonce: Uint8Array, text: string | Uint8Array): string {
  return createHmac('sha256', nonce).update(text).digest('base64url');
}

/**
 * The bytes of a text that are proven, those of its canonical record: every memory, near or far, has
 * the same. `role`: who said it. Undefined for a text that has no UTF-8 form.
 */
export function textBytes(role: TextRole, text: string): Uint8Array | undefined {
  return recordBytes(recordOfText(role, text));
}

/** The proof of a text; undefined for one that has no UTF-8 form. */
export function textProof(nonce: Uint8Array, role: TextRole, text: string): string | undefined {
  const bytes = textBytes(role, text);
  return bytes === undefined ? undefined : proofOf(nonce, bytes);
}
