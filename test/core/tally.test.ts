import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Tally } from '../../src/core/bytes/tally.ts';

test('the highest are found, of equal ones the later, and none that is not wanted', () => {
  const tally = new Tally(4);
  tally.addAll(Uint32Array.of(1, 2, 3), 4);
  tally.addAll(Uint32Array.of(2), 5);
  tally.addAll(Uint32Array.of(1, 3), 1);
  tally.addAll(Uint32Array.of(4096), 1);
  tally.addAll(new Uint32Array(0), 9);
  expect(tally.size).toBe(4);
  expect(tally.highest(2)).toEqual([2, 3]);
  expect(tally.highest(9)).toEqual([2, 3, 1, 4096]);
  expect(tally.highest(2, new Set([2, 1]))).toEqual([3, 4096]);
  expect(new Tally(0).highest(3)).toEqual([]);
});

const key = fc.oneof(fc.nat({ max: 5000 }), fc.nat({ max: 2 ** 32 - 2 }));
const lists = fc.array(
  fc.tuple(fc.array(key, { maxLength: 3000 }), fc.float({ noNaN: true, noDefaultInfinity: true })),
  {
    maxLength: 4,
  },
);

test('it says what a map and a sort say, however many keys there are', () => {
  fc.assert(
    fc.property(lists, fc.nat({ max: 40 }), fc.array(key), (given, count, without) => {
      const tally = new Tally(0);
      const sums = new Map<number, number>();
      for (const [keys, value] of given) {
        tally.addAll(Uint32Array.from(keys), value);
        for (const one of keys) sums.set(one, (sums.get(one) ?? 0) + value);
      }
      for (const one of without) sums.delete(one);
      const expected = [...sums]
        .toSorted(([a, one], [b, other]) => other - one || b - a)
        .slice(0, count)
        .map(([one]) => one);
      expect(tally.highest(count, new Set(without))).toEqual(expected);
    }),
    { numRuns: 60 },
  );
});
