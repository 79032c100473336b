import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';

/**
 * The key of a memory service: `svc_live_PUBLIC_SECRET_CHECKSUM`, with parts of 12, 43 and 7 characters. The service
 * finds a key by its public part. The checksum detects typing mistakes, and lets a secret scanner recognise a key.
 * Anyone can compute it, so it proves nothing. An admin's token has the same form, but begins with `svc_admin_`.
 */

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const TOKEN = /^((svc_live|svc_admin)_([0-9A-Za-z]{12})_([0-9A-Za-z]{43}))_([0-9A-Za-z]{7})$/;

/** Bytes of the public part, which has PUBLIC_CHARS characters. */
export const PUBLIC_BYTES = 8;
export const SECRET_BYTES = 32;
const PUBLIC_CHARS = 12;
const SECRET_CHARS = 43;
/** Bytes of the checksum: 40 bits, because seven base62 characters have room for 41. */
const CHECKSUM_BYTES = 5;
const CHECKSUM_CHARS = 7;

export type TokenPrefix = 'svc_live' | 'svc_admin';

export interface ServiceKey {
  readonly publicId: string;
  readonly secret: string;
}

/** Parses a key; undefined if its form, its prefix or its checksum is wrong. */
export function parseServiceKey(
  key: string,
  expected: TokenPrefix = 'svc_live',
): ServiceKey | undefined {
  const [, checked, prefix, publicId, secret, checksum] = TOKEN.exec(key) ?? [];
  if (checked === undefined || publicId === undefined || secret === undefined) return undefined;
  return prefix === expected && checksumOf(checked) === checksum ? { publicId, secret } : undefined;
}

/** Writes a key from 8 and 32 fresh random bytes. */
export function formatServiceKey(
  publicBytes: Uint8Array,
  secretBytes: Uint8Array,
  prefix: TokenPrefix = 'svc_live',
): string {
  return renewServiceKey(base62(publicBytes, PUBLIC_CHARS), secretBytes, prefix);
}

/** Writes a key with the same public part and a new secret. */
export function renewServiceKey(
  publicId: string,
  secretBytes: Uint8Array,
  prefix: TokenPrefix = 'svc_live',
): string {
  const checked = `${prefix}_${publicId}_${base62(secretBytes, SECRET_CHARS)}`;
  return `${checked}_${checksumOf(checked)}`;
}

function checksumOf(checked: string): string {
  const digest = hash('sha256', checked, 'buffer');
  return base62(digest.subarray(0, CHECKSUM_BYTES), CHECKSUM_CHARS);
}

function base62(bytes: Uint8Array, chars: number): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString('hex')}`);
  let digits = '';
  for (let place = 0; place < chars; place += 1) {
    digits = (ALPHABET[Number(rest % 62n)] ?? '') + digits;
    rest /= 62n;
  }
  return digits;
}
