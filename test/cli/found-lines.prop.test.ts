import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { findLines } from '../../src/cli/memory/excerpt.ts';

/** Patterns that mean the same to JavaScript, which is the oracle. */
const atom = fc.constantFrom(
  'a',
  'b',
  '.',
  '\\d',
  '\\w',
  '\\s',
  '[ab]',
  '[^a]',
  '[0-9_-]',
  '\\.',
  '\\b',
);
const sign = fc.constantFrom('', '', '', '*', '+', '?', '{2}', '{1,3}', '{2,}', '*?');
const piece = fc.tuple(atom, sign).map(([one, many]) => (one === '\\b' ? one : `${one}${many}`));
const row = fc.array(piece, { maxLength: 4 }).map((pieces) => pieces.join(''));
const pattern = fc
  .tuple(fc.constantFrom('', '^'), row, row, sign, row, fc.constantFrom('', '$'))
  .map(([start, one, two, many, rest, end]) => `${start}(${one}|${two})${many}${rest}${end}`);
const lines = fc.array(
  fc
    .array(fc.constantFrom('a', 'b', 'A', '1', '_', ' ', '.', '-'), { maxLength: 10 })
    .map((it) => it.join('')),
  { maxLength: 6 },
);

test('a pattern finds what JavaScript finds with it', () => {
  fc.assert(
    fc.property(pattern, lines, (text, list) => {
      const expression = new RegExp(text);
      const expected = list.flatMap((line, at) => (expression.test(line) ? [at] : []));
      const { lines: found, as } = findLines(list, text);
      if (expected.length > 0) expect({ as, found }).toEqual({ as: 'pattern', found: expected });
      else expect(as).not.toBe('pattern');
    }),
    { numRuns: 500 },
  );
});

test('any text may be a pattern, and one that is no expression is looked for as it stands', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), lines, (text, list) => {
      const holding = text === '' ? [] : [`x${text}y`];
      const { lines: found } = findLines([...list, ...holding], text);
      if (holding.length > 0) expect(found).toContain(list.length);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['foo(', ['call foo(1)'], 'text'],
  ['foo(bar)', ['foobar', 'foo(bar)'], 'pattern'],
  ['a\\|b', ['xbx'], 'pattern'],
  ['[a', ['[a'], 'text'],
  ['READ', ['read it'], 'any case'],
  ['x{1,2000}y{', ['x{1,2000}y{'], 'text'],
])('%s in %j is found as %s', (text, list, as) => {
  expect(findLines(list, text)).toMatchObject({ as, lines: expect.arrayContaining([0]) });
});

test('R17: a pattern that would take for ever ends, and says how far it came', () => {
  const evil = 'a'.repeat(100);
  for (const text of ['(a+)+$b', '(a|a)*c', '(.*)*d', '((a{1,30}){1,30})e']) {
    expect(findLines(['ae', evil, evil], text)).toMatchObject({ looked: 1 });
  }
});
