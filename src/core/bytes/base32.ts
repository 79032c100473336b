/**
 * Five bits a digit, the highest first, behind `leading` zero bits. The last digit is filled with zeros
 * where bits are missing.
 */
export function base32(bytes: Uint8Array, digits: string, leading = 0): string {
  let text = '';
  let bits = 0;
  let count = leading;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    count += 8;
    while (count >= 5) {
      count -= 5;
      text += digits.charAt((bits >>> count) & 31);
    }
  }
  return count === 0 ? text : text + digits.charAt((bits << (5 - count)) & 31);
}
