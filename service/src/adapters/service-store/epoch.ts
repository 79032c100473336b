import { randomBytes } from 'node:crypto';

/** 8 characters, 47 bits: no two databases of one service share an epoch by chance. */
export function newEpoch(): string {
  const alphabet = '0123456789abcdefghijklmnopqrstuvwxyz';
  // 252 is 7 times 36: what is over would make the first letters likelier.
  const bytes = [...randomBytes(64)].filter((byte) => byte < 252).slice(0, 8);
  return bytes.map((byte) => alphabet[byte % 36]).join('');
}
