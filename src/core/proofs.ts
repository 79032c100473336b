import { createHmac } from 'node:crypto';

/** Bytes of a nonce: as many as the hash has. */
export const NONCE_BYTES = 32;

/**
 * Proves to whoever knows the text that its UTF-8 bytes are at hand now: an HMAC-SHA256 with the
 * asker's fresh nonce as its key, base64url. The nonce comes first, so nothing short of the text
 * itself, no hash and no half-finished hash, can answer.
 */
export function proofOf(nonce: Uint8Array, text: string | Uint8Array): string {
  return createHmac('sha256', nonce).update(text).digest('base64url');
}
