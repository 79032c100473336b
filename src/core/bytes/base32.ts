import { Buffer } from 'node:buffer';

/** Digits of the longest text that is usual; a longer one gets a buffer of its own. */
const SCRATCH = Buffer.alloc(64);

/**
 * Five bits a digit, the highest first, behind `leading` zero bits. The last digit is filled with zeros
 * where bits are missing. Digits are written into one buffer: a text that grows digit by digit is a chain of
 * 26 strings, which the next to read it has to join.
 */
export function base32(bytes: Uint8Array, digits: string, leading = 0): string {
  const length = Math.ceil((bytes.length * 8 + leading) / 5);
  const text = length <= SCRATCH.length ? SCRATCH : Buffer.alloc(length);
  let bits = 0;
  let count = leading;
  let at = 0;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    count += 8;
    while (count >= 5) {
      count -= 5;
      text[at] = digits.charCodeAt((bits >>> count) & 31);
      at += 1;
    }
  }
  if (count > 0) text[at] = digits.charCodeAt((bits << (5 - count)) & 31);
  return text.toString('latin1', 0, length);
}
