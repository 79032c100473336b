import { expect, test } from 'vitest';
import { KnownTexts } from '../../src/proxy/output-keeper.ts';

test('a text is known in its own space alone, until it is deleted', () => {
  const texts = new KnownTexts(10);
  texts.add('local:a', 'x');
  texts.add('local:a', 'x');
  expect(texts.size).toBe(1);
  expect(texts.has('local:a', 'x')).toBe(true);
  expect(texts.has('local:b', 'x')).toBe(false);
  texts.delete('local:b', 'x');
  texts.delete('local:a', 'y');
  expect(texts.size).toBe(1);
  texts.delete('local:a', 'x');
  expect(texts.size).toBe(0);
  expect(texts.has('local:a', 'x')).toBe(false);
});

test('beyond the limit, the oldest texts of the oldest space make way', () => {
  const texts = new KnownTexts(3);
  for (const digest of ['1', '2']) texts.add('a', digest);
  for (const digest of ['3', '4', '5', '6']) texts.add('b', digest);
  expect(texts.size).toBe(3);
  const known = ['1', '2', '3', '4', '5', '6'].filter(
    (it) => texts.has('a', it) || texts.has('b', it),
  );
  expect(known).toEqual(['4', '5', '6']);
  texts.clear();
  expect(texts.size).toBe(0);
  expect(texts.has('b', '6')).toBe(false);
});
