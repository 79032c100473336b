import { Buffer } from 'node:buffer';

/** `prefix_` and 26 characters of lower-case base 36, of 130 random bits. */
export function newId(prefix: string, randomBytes: (count: number) => Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(randomBytes(17)).toString('hex')}`);
  let id = '';
  for (let place = 0; place < 26; place += 1) {
    id += (rest % 36n).toString(36);
    rest /= 36n;
  }
  return `${prefix}_${id}`;
}
