import { createHmac } from 'node:crypto';
import { recordBytes, recordOfText } from '../memory-api/canonical.ts';
import type { TextRole } from '../memory/reference.ts';

/** Bytes of a nonce: as many as the hash has. */
export const NONCE_BYTES = 32;

/**
 * Returns the proof that a memory has these bytes (of a text: its UTF-8 bytes): their HMAC-SHA256 in base64url. The
 * asker chooses a new nonce as the key, so a memory cannot answer with a hash that it stored before.
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
