import { Buffer } from 'node:buffer';

/**
 * Names of receipts: `rcpt_` and a UUID of version 7 (RFC 9562) in Crockford's base 32, lower case.
 * The text sorts as the time in it, so a page of receipts is found by their names alone.
 */

const DIGITS = '0123456789abcdefghjkmnpqrstvwxyz';
const LENGTH = 26;

export const RECEIPT_ID = /^rcpt_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** The time has 48 bits: until the year 10889. */
const TIME_MAX = 2 ** 48 - 1;

/** `at`: milliseconds since 1970 when the request came. */
export function newReceiptId(at: number, randomBytes: (count: number) => Uint8Array): string {
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(clamp(at), 0, 6);
  bytes.set(randomBytes(10), 6);
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  return `rcpt_${base32(BigInt(`0x${bytes.toString('hex')}`))}`;
}

/** The first id that a request of this moment may have: for a list from a time on. */
export function firstReceiptIdAt(at: number): string {
  return `rcpt_${base32(BigInt(clamp(at)) << 80n)}`;
}

/** Milliseconds since 1970; undefined for what is no id. */
export function timeOfReceiptId(id: string): number | undefined {
  if (!RECEIPT_ID.test(id)) return undefined;
  let value = 0n;
  for (const digit of id.slice('rcpt_'.length)) {
    value = value * 32n + BigInt(DIGITS.indexOf(digit));
  }
  return Number(value >> 80n);
}

function base32(value: bigint): string {
  let text = '';
  let rest = value;
  for (let place = 0; place < LENGTH; place += 1) {
    text = DIGITS.charAt(Number(rest % 32n)) + text;
    rest /= 32n;
  }
  return text;
}

function clamp(at: number): number {
  return Math.min(Math.max(0, Math.floor(at)), TIME_MAX);
}
