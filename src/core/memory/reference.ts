import { Buffer } from 'node:buffer';

/** Names a record in a shell, a stub and a block: short, stable, typed by people. */

/** 80 bits: two records of one store share a reference with a chance of 1 in 10^12 at 10^6 records. */
const REFERENCE_BYTES = 10;
const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
/** A sha256 in base64url without padding. */
const DIGEST = /^[A-Za-z0-9_-]{43}$/;

/** Every reference in a text. Stateless with `match` and `matchAll` only. */
export const REFERENCES = /\bm_[a-z2-7]{16}\b/g;

export function isDigest(value: string): boolean {
  return DIGEST.test(value);
}

/** `m_` and 16 characters of lower-case base32, from the digest's first 10 bytes. */
export function referenceOf(digest: string): string {
  return `m_${base32Of(digest)}`;
}

/** The first 80 bits of a base64url digest. */
export function base32Of(digest: string): string {
  let bits = 0n;
  for (const byte of Buffer.from(digest, 'base64url').subarray(0, REFERENCE_BYTES)) {
    bits = (bits << 8n) | BigInt(byte);
  }
  let text = '';
  for (let shift = 75n; shift >= 0n; shift -= 5n) text += ALPHABET[Number((bits >> shift) & 31n)];
  return text;
}
