import { Buffer } from 'node:buffer';
import { base32 } from '../../../src/core/memory/reference.ts';

/** Returns `prefix_` and 26 random characters of lower-case base 36, which have 134 bits. */
export function newId(prefix: string, randomBytes: (count: number) => Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(randomBytes(17)).toString('hex')}`);
  let id = '';
  for (let place = 0; place < 26; place += 1) {
    id += (rest % 36n).toString(36);
    rest /= 36n;
  }
  return `${prefix}_${id}`;
}

/** Crockford's base 32, in lower case. */
const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';

/** Writes five bits of each byte as a character. */
export function shortText(bytes: Uint8Array): string {
  return [...bytes].map((byte) => DIGITS[byte % 32]).join('');
}

/** Zero bits in front of a UUID: 26 digits of base 32 hold 130 bits, and a UUID has 128. */
const LEADING_BITS = 2;
/** Number of digits that contain the leading bits and the 48 bits of the time. */
const TIME_DIGITS = 10;

/**
 * Matches receipt ids: `rcpt_` and a UUID of version 7 (RFC 9562) in Crockford's base 32, lower case. The text sorts
 * by the time in it, so a page of receipts is found by ids alone.
 */
export const RECEIPT_ID = /^rcpt_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** The time has 48 bits: until the year 10889. */
const TIME_MAX = 2 ** 48 - 1;

/** Makes a receipt id. `at`: when the request came, in milliseconds since 1970. */
export function newReceiptId(at: number, randomBytes: (count: number) => Uint8Array): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(clamp(at), 0, 6);
  bytes.set(randomBytes(10), 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return idOf(bytes);
}

/** Returns the smallest id of a time, in milliseconds since 1970, for a list that begins at that time. */
export function firstReceiptIdAt(at: number): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(clamp(at), 0, 6);
  return idOf(bytes);
}

/** Returns the time of a receipt id in milliseconds since 1970; undefined for any other text. */
export function timeOfReceiptId(id: string): number | undefined {
  if (!RECEIPT_ID.test(id)) return undefined;
  const start = 'rcpt_'.length;
  let at = 0;
  for (const digit of id.slice(start, start + TIME_DIGITS)) at = at * 32 + DIGITS.indexOf(digit);
  return at;
}

function idOf(bytes: Uint8Array): string {
  return `rcpt_${base32(bytes, DIGITS, LEADING_BITS)}`;
}

function clamp(at: number): number {
  return Math.min(Math.max(0, Math.floor(at)), TIME_MAX);
}
