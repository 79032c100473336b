import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Known } from '../../src/core/recall/known.ts';

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
        if (known.get(key) !== value) wrong.add(key);
      }
      expect([...wrong]).toEqual([]);
    }),
  );
});
