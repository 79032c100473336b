/**
 * XXH64 with seed 0: the checksum that ends a zstd frame. 64-bit words are pairs of 32-bit
 * integers, because BigInt is some forty times slower here and a checked body may have 64 MiB.
 */

/** The low 32 bits of the hash, unsigned: all that a zstd frame stores. */
export function xxh64Low(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const hash = new Word(0, 0);
  let at = 0;
  if (bytes.length >= 32) at = hashStripes(view, hash);
  else copy(hash, PRIME_5);
  addSmall(hash, bytes.length);
  return finish(view, at, hash);
}

/** A 64-bit integer that is changed in place: one hash makes millions of steps. */
class Word {
  high: number;
  low: number;

  constructor(high: number, low: number) {
    this.high = high | 0;
    this.low = low | 0;
  }
}

const PRIME_1 = new Word(0x9e3779b1, 0x85ebca87);
const PRIME_2 = new Word(0xc2b2ae3d, 0x27d4eb4f);
const PRIME_3 = new Word(0x165667b1, 0x9e3779f9);
const PRIME_4 = new Word(0x85ebca77, 0xc2b2ae63);
const PRIME_5 = new Word(0x27d4eb2f, 0x165667c5);

/** Mixes all whole 32-byte stripes into `hash` and returns where they end. */
function hashStripes(view: DataView, hash: Word): number {
  const lanes = [
    new Word(0x60ea27ee, 0xadc0b5d6), // PRIME_1 + PRIME_2
    new Word(PRIME_2.high, PRIME_2.low),
    new Word(0, 0),
    new Word(0x61c8864e, 0x7a143579), // -PRIME_1
  ] as const;
  const [first, second, third, fourth] = lanes;
  let at = 0;
  for (; at + 32 <= view.byteLength; at += 32) {
    mixLane(first, view, at);
    mixLane(second, view, at + 8);
    mixLane(third, view, at + 16);
    mixLane(fourth, view, at + 24);
  }
  const turned = new Word(0, 0);
  for (const [index, lane] of lanes.entries()) {
    copy(turned, lane);
    rotate(turned, [1, 7, 12, 18][index] ?? 0);
    add(hash, turned);
  }
  for (const lane of lanes) {
    multiply(lane, PRIME_2);
    rotate(lane, 31);
    multiply(lane, PRIME_1);
    xor(hash, lane);
    multiply(hash, PRIME_1);
    add(hash, PRIME_4);
  }
  return at;
}

function mixLane(lane: Word, view: DataView, at: number): void {
  addProduct(lane, view.getInt32(at + 4, true), view.getInt32(at, true));
  rotate(lane, 31);
  multiply(lane, PRIME_1);
}

/** lane += (high:low) * PRIME_2 */
function addProduct(lane: Word, high: number, low: number): void {
  SCRATCH.high = high;
  SCRATCH.low = low;
  multiply(SCRATCH, PRIME_2);
  add(lane, SCRATCH);
}

const SCRATCH = new Word(0, 0);

function finish(view: DataView, start: number, hash: Word): number {
  let at = start;
  const word = new Word(0, 0);
  for (; at + 8 <= view.byteLength; at += 8) {
    copy(word, ZERO);
    mixLane(word, view, at);
    xor(hash, word);
    rotate(hash, 27);
    multiply(hash, PRIME_1);
    add(hash, PRIME_4);
  }
  if (at + 4 <= view.byteLength) {
    mixSmall(hash, view.getUint32(at, true), PRIME_1);
    rotate(hash, 23);
    multiply(hash, PRIME_2);
    add(hash, PRIME_3);
    at += 4;
  }
  for (; at < view.byteLength; at += 1) {
    mixSmall(hash, view.getUint8(at), PRIME_5);
    rotate(hash, 11);
    multiply(hash, PRIME_1);
  }
  shiftXor(hash, 33);
  multiply(hash, PRIME_2);
  shiftXor(hash, 29);
  multiply(hash, PRIME_3);
  shiftXor(hash, 32);
  return hash.low >>> 0;
}

const ZERO = new Word(0, 0);

/** hash ^= value * prime */
function mixSmall(hash: Word, value: number, prime: Word): void {
  const word = new Word(0, value);
  multiply(word, prime);
  xor(hash, word);
}

function copy(into: Word, from: Word): void {
  into.high = from.high;
  into.low = from.low;
}

function xor(into: Word, other: Word): void {
  into.high ^= other.high;
  into.low ^= other.low;
}

function add(into: Word, other: Word): void {
  const low = (into.low >>> 0) + (other.low >>> 0);
  into.high = (into.high + other.high + (low > 0xffffffff ? 1 : 0)) | 0;
  into.low = low | 0;
}

function addSmall(into: Word, value: number): void {
  add(into, new Word(0, value));
}

function multiply(into: Word, by: Word): void {
  const { low } = into;
  into.high =
    (highProduct(low, by.low) + Math.imul(into.high, by.low) + Math.imul(low, by.high)) | 0;
  into.low = Math.imul(low, by.low);
}

/** The upper 32 bits of the product of two unsigned 32-bit integers, in 16-bit pieces. */
function highProduct(a: number, b: number): number {
  const aHigh = a >>> 16;
  const aLow = a & 0xffff;
  const bHigh = b >>> 16;
  const bLow = b & 0xffff;
  const carry = (Math.imul(aLow, bLow) >>> 16) + (Math.imul(aHigh, bLow) >>> 0);
  const middle = (Math.imul(aLow, bHigh) >>> 0) + (carry & 0xffff);
  return (Math.imul(aHigh, bHigh) + Math.floor(carry / 0x10000) + Math.floor(middle / 0x10000)) | 0;
}

/** Left, by 1 to 31. */
function rotate(word: Word, by: number): void {
  const { high, low } = word;
  word.high = (high << by) | (low >>> (32 - by));
  word.low = (low << by) | (high >>> (32 - by));
}

/** word ^= word >>> by, for `by` of 29, 32 or 33. */
function shiftXor(word: Word, by: number): void {
  const { high, low } = word;
  if (by < 32) {
    word.low = low ^ ((low >>> by) | (high << (32 - by)));
    word.high = high ^ (high >>> by);
  } else {
    word.low = low ^ (high >>> (by - 32));
  }
}
