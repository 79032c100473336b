/**
 * A Bloom filter over the keys of the ledger's table, in memory that two threads share. It can
 * prove that a key is not in the table, and says nothing about other keys. Keys are never removed:
 * a filter with too many keys only helps less often.
 */

/** With 20,000 keys one absent key in a billion looks present, with 200,000 one in 120. */
export const KEY_FILTER_BYTES = 1 << 18;
const HASHES = 7;

export class KeyFilter {
  readonly #words: Uint32Array;
  readonly #bitsMask: number;

  /** Takes all memory from `offset` on: a power of two, in bytes. */
  constructor(memory: SharedArrayBuffer, offset: number) {
    this.#words = new Uint32Array(memory, offset);
    this.#bitsMask = this.#words.byteLength * 8 - 1;
  }

  add(key: string): void {
    const [one, other] = hashesOf(key);
    for (let at = 0; at < HASHES; at += 1) {
      const bit = (one + Math.imul(at, other)) & this.#bitsMask;
      const word = bit >>> 5;
      this.#words[word] = (this.#words[word] ?? 0) | (1 << (bit & 31));
    }
  }

  /** False: the key was never added. */
  mayHave(key: string): boolean {
    const [one, other] = hashesOf(key);
    for (let at = 0; at < HASHES; at += 1) {
      const bit = (one + Math.imul(at, other)) & this.#bitsMask;
      if (((this.#words[bit >>> 5] ?? 0) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** Another start: the two hashes must not follow from one another. */
const OTHER_OFFSET = 0x2f0b4a47;
const OTHER_PRIME = 0x85ebca6b;

function hashesOf(key: string): readonly [number, number] {
  let one = FNV_OFFSET;
  let other = OTHER_OFFSET;
  for (let at = 0; at < key.length; at += 1) {
    const code = key.charCodeAt(at);
    one = Math.imul(one ^ code, FNV_PRIME);
    other = Math.imul(other ^ code, OTHER_PRIME);
    other ^= other >>> 15;
  }
  return [mixed(one), mixed(other) | 1];
}

/** The low bits of a multiplicative hash depend on the low bits of the text alone. */
function mixed(hash: number): number {
  const high = Math.imul(hash ^ (hash >>> 16), OTHER_PRIME);
  return high ^ (high >>> 13);
}
