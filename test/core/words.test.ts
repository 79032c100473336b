import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { wordsIn } from '../../src/core/recall/words.ts';

/** What a word is, as a pattern. */
const WORD = /[\p{L}\p{M}\p{N}_]+(?:[-./:'’][\p{L}\p{M}\p{N}_]+)*/gu;

test.each([
  ['src/core/recall/terms.ts at the end.', ['src/core/recall/terms.ts', 'at', 'the', 'end']],
  ["don't, John’s --flag a..b", ["don't", 'John’s', 'flag', 'a', 'b']],
  ['日本語 и naïve', ['日本語', 'и', 'naïve']],
  ['𝒜𠮷 😀x', ['𝒜𠮷', 'x']],
  ['-a- :b', ['a', 'b']],
  ['', []],
  ['... --- ...', []],
])('the words of %s', (text, words) => expect(wordsIn(text)).toEqual(words));

/** Word characters, separators and others, and halves of both. */
const UNITS = "ab Z_-./:'’9é\u0300日·٣\u200d\n\ud835\udc9c\ud83d\ude00";

test('a word is what the pattern says, in any text', () => {
  const pieces = fc.constantFrom(
    ...Array.from({ length: UNITS.length }, (_, at) => UNITS.charAt(at)),
  );
  const texts = fc.oneof(
    fc.string({ unit: pieces }),
    fc.string({ unit: 'binary' }),
    fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(wordsIn(text)).toEqual(text.match(WORD) ?? []);
    }),
    { numRuns: 1000 },
  );
});
