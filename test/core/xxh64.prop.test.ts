import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { xxh64Low } from '../../src/core/encoding/xxh64.ts';

test('R11: gives the published hashes', () => {
  // From the reference implementation's own sanity checks: the lower halves, seed 0.
  const published: readonly [string, number][] = [
    ['', 0x51d8e999],
    ['a', 0xa98c6e5b],
    ['abc', 0xad770999],
  ];
  for (const [text, low] of published) expect(xxh64Low(Buffer.from(text))).toBe(low);
});

test('R11: gives what the definition in 64-bit arithmetic gives, for every length and content', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(7), (bytes, offset) => {
      const shifted = new Uint8Array(bytes.length + offset);
      shifted.set(bytes, offset);
      expect(xxh64Low(shifted.subarray(offset))).toBe(xxh64LowByDefinition(bytes));
    }),
    { numRuns: 1_000 },
  );
});

/** The specification, word for word, in BigInt. */
function xxh64LowByDefinition(bytes: Uint8Array): number {
  const [p1, p2, p3, p4, p5] = [
    0x9e3779b185ebca87n,
    0xc2b2ae3d27d4eb4fn,
    0x165667b19e3779f9n,
    0x85ebca77c2b2ae63n,
    0x27d4eb2f165667c5n,
  ] as const;
  const cut = (value: bigint): bigint => BigInt.asUintN(64, value);
  const rotateLeft = (value: bigint, by: bigint): bigint =>
    cut((value << by) | (value >> (64n - by)));
  const round = (lane: bigint, input: bigint): bigint =>
    cut(rotateLeft(cut(lane + input * p2), 31n) * p1);
  const view = Buffer.from(bytes);
  let at = 0;
  let hash: bigint = p5;
  if (view.length >= 32) {
    let lanes = [cut(p1 + p2), p2, 0n, cut(-p1)];
    for (; at + 32 <= view.length; at += 32) {
      lanes = lanes.map((lane, index) => round(lane, view.readBigUInt64LE(at + index * 8)));
    }
    hash = cut(
      lanes.reduce(
        (sum, lane, index) => sum + rotateLeft(lane, [1n, 7n, 12n, 18n][index] ?? 0n),
        0n,
      ),
    );
    for (const lane of lanes) hash = cut((hash ^ round(0n, lane)) * p1 + p4);
  }
  hash = cut(hash + BigInt(view.length));
  for (; at + 8 <= view.length; at += 8) {
    hash = cut(rotateLeft(hash ^ round(0n, view.readBigUInt64LE(at)), 27n) * p1 + p4);
  }
  if (at + 4 <= view.length) {
    hash = cut(rotateLeft(hash ^ cut(BigInt(view.readUInt32LE(at)) * p1), 23n) * p2 + p3);
    at += 4;
  }
  for (; at < view.length; at += 1) {
    hash = cut(rotateLeft(hash ^ cut(BigInt(view.readUInt8(at)) * p5), 11n) * p1);
  }
  hash = cut((hash ^ (hash >> 33n)) * p2);
  hash = cut((hash ^ (hash >> 29n)) * p3);
  return Number((hash ^ (hash >> 32n)) & 0xffffffffn);
}
