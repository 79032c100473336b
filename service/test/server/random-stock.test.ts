import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { stockedBytes } from '../../src/server/random-stock.ts';

test('bytes from a stock have the length that was asked for, and none is given twice', () => {
  const given: Uint8Array[] = [];
  const take = stockedBytes((count) => {
    const bytes = randomBytes(count);
    given.push(bytes);
    return bytes;
  });
  const counts = [10, 4096, 1, 5000, 10, ...Array.from({ length: 1000 }, () => 10)];
  const taken = counts.map((count) => take(count));
  expect(taken.map(({ length }) => length)).toEqual(counts);
  const places = taken.map(({ buffer, byteOffset, length }) => ({ buffer, byteOffset, length }));
  for (const [at, { buffer, byteOffset }] of places.entries()) {
    const before = places[at - 1];
    if (before?.buffer !== buffer) continue;
    expect(byteOffset).toBeGreaterThanOrEqual(before.byteOffset + before.length);
  }
  expect(given.length).toBeLessThan(10);
});
