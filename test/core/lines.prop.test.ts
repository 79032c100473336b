import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { countLines } from '../../src/core/shortening/stubs.ts';
import { beginningOf, linesOf, parseLineRange } from '../../src/cli/memory/excerpt.ts';

/** Texts with every kind of line end that is none to us, and without one at their end. */
const texts = fc
  .array(fc.constantFrom('a', 'line', '\n', '\r\n', '\r', '\u2028', '\0', '€', '𝄞', '\uFEFF', ' '))
  .map((pieces) => pieces.join(''));

test('lines put together are the text, byte for byte, wherever it is cut', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 5 }), (text, size) => {
      const parts: Buffer[] = [];
      for (let from = 1; from <= countLines(text); from += size) {
        parts.push(Buffer.from(linesOf(text, { from, to: from + size - 1 })));
      }
      expect(Buffer.concat(parts).equals(Buffer.from(text))).toBe(true);
    }),
  );
});

test('a range says the same as cutting behind every line feed', () => {
  fc.assert(
    fc.property(texts, fc.nat(9), fc.nat(9), (text, start, more) => {
      const lines = text.split(/(?<=\n)/);
      const range = { from: start + 1, to: start + 1 + more };
      expect(linesOf(text, range)).toBe(lines.slice(start, range.to).join(''));
      expect(countLines(text)).toBe(text === '' ? 0 : lines.length);
    }),
  );
});

test('a beginning is whole lines within its limit, or a part of the first one', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 2, max: 30 }), (text, charsMax) => {
      const start = beginningOf(text, charsMax);
      expect(text.startsWith(start.text)).toBe(true);
      expect(start.text.length).toBeLessThanOrEqual(charsMax);
      expect(start.text === '').toBe(text === '');
      expect(start.text).not.toMatch(/\p{Surrogate}/u);
      const { wholeLines } = start;
      if (wholeLines > 0) expect(start.text).toBe(linesOf(text, { from: 1, to: wholeLines }));
      else expect(countLines(start.text)).toBeLessThan(2);
    }),
  );
});

test.each(['', '1', '0-3', '3-2', '1-', '-1', 'a-b', '1-2-3', '1 - 2', '1-9999999999'])(
  '%j is no range of lines',
  (text) => {
    expect(parseLineRange(text)).toBeUndefined();
  },
);
