import { expect, test } from 'vitest';
import { forgetOldest } from '../../src/core/bytes/recent.ts';

test('what has stood there longest goes, from maps and sets, until the bound is held', () => {
  const set = new Set(['a', 'b', 'c', 'd']);
  forgetOldest(set, 4);
  expect([...set]).toEqual(['a', 'b', 'c', 'd']);
  forgetOldest(set, 2);
  expect([...set]).toEqual(['c', 'd']);
  const map = new Map([['a', 1]]).set('b', 2);
  map.delete('a');
  map.set('a', 3);
  forgetOldest(map, 1);
  expect([...map]).toEqual([['a', 3]]);
  forgetOldest(map, 0);
  expect(map.size).toBe(0);
});
