/** Receipts of the past, a millisecond after each other; their ids count up. */
const TIME_HEX = 12;
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const FIRST_MS = Date.UTC(2025, 0, 1);

/** A receipt's id: Crockford's base32 of a UUIDv7. */
export function idAt(number) {
  const time = (FIRST_MS + number).toString(16).padStart(TIME_HEX, '0');
  let left = BigInt(
    `0x${time}7${number.toString(16).padStart(3, '0').slice(-3)}8${'0'.repeat(15)}`,
  );
  let text = '';
  for (let at = 0; at < 26; at += 1) {
    text = ALPHABET[Number(left & 31n)] + text;
    left >>= 5n;
  }
  return `rcpt_${text}`;
}
