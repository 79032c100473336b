import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Known } from '../../src/core/bytes/known.ts';

test('what was asked for lately stays, and what was not goes', () => {
  const known = new Known<number>(2);
  known.set('a', 1);
  known.set('b', 2);
  known.set('c', 3);
  expect(known.get('a')).toBe(1);
  // Asked for, so it is among the newest again.
  known.set('d', 4);
  expect([known.get('a'), known.get('c')]).toEqual([1, 3]);
  known.set('e', 5);
  known.set('f', 6);
  expect(known.get('b')).toBeUndefined();
  expect(known.get('f')).toBe(6);
});

test('a piece of a long text is found by its letters', () => {
  const known = new Known<number>(8);
  const text = 'the walrus and the carpenter were walking close at hand';
  known.set(text.slice(4, 28), 1);
  expect(known.get('walrus and the carpenter')).toBe(1);
});

test('a piece is found in its text as it is found by itself', () => {
  const known = new Known<number>(8);
  known.set('walrus', 1);
  const text = 'the walrus and the carpenter';
  expect(known.getIn(text, 4, 10)).toBe(1);
  expect(known.getIn(text, 4, 9)).toBeUndefined();
  expect(known.getIn(text, 0, text.length)).toBeUndefined();
});

test('it holds all of so many texts, whatever they are, with the newest value of each', () => {
  const texts = fc.array(fc.string({ unit: 'binary', maxLength: 40 }), { maxLength: 600 });
  fc.assert(
    fc.property(texts, (keys) => {
      const known = new Known<number>(keys.length + 1);
      const values = new Map<string, number>();
      const wrong = new Set<string>();
      for (const [at, key] of keys.entries()) {
        if (known.get(key) !== values.get(key)) wrong.add(key);
        known.set(key, at);
        values.set(key, at);
      }
      for (const [key, value] of values) {
        if (known.getIn(`a${key}b`, 1, key.length + 1) !== value) wrong.add(key);
      }
      expect([...wrong]).toEqual([]);
    }),
  );
});

test('texts that were chosen to have the same hash are forgotten, so none takes long to find', () => {
  const texts = textsOfOneHash(400);
  const known = new Known<string>(1000);
  const lost = texts.filter((text) => {
    known.set(text, text);
    return known.get(text) !== text;
  });
  expect(lost).toEqual([]);
  const held = texts.filter((text) => known.get(text) === text);
  expect(held.length).toBeLessThan(200);
});

/** Three UTF-16 units each: the last one makes up for the two before it. */
function textsOfOneHash(count: number): string[] {
  const found: string[] = [];
  const mix = (hash: number, unit: number): number => Math.imul(hash ^ unit, 0x5bd1e995);
  const aim = mix(mix(3, 0), 0);
  for (let first = 0; found.length < count; first += 1) {
    const begun = mix(3, first);
    for (let second = 0; second < 0x10000; second += 1) {
      const third = (mix(begun, second) ^ aim) >>> 0;
      if (third < 0x10000) found.push(String.fromCharCode(first, second, third));
    }
  }
  return found.slice(0, count);
}
