import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { cutPassages, PASSAGE_TOKENS_MAX, passageTokens } from '../../src/core/recall/passages.ts';

const text = fc.oneof(
  fc.lorem({ maxCount: 200, mode: 'sentences' }),
  fc.string({ unit: 'grapheme', maxLength: 2000 }),
  fc
    .array(
      fc.constantFrom('word ', 'x'.repeat(500), '\n', '\n\n', '. ', '東京。', '👩‍🚀', '\uD83D', '  '),
    )
    .map((pieces) => pieces.join('')),
);

test('passages follow each other, and what is left out is blank', () => {
  fc.assert(
    fc.property(text, (given) => {
      let end = 0;
      for (const passage of cutPassages(given)) {
        expect(given.slice(end, passage.start).trim()).toBe('');
        expect(passage.end).toBeGreaterThan(passage.start);
        end = passage.end;
      }
      expect(given.slice(end).trim()).toBe('');
    }),
    { numRuns: 1000 },
  );
});

test('no passage is longer than the limit, or cuts a character in half', () => {
  fc.assert(
    fc.property(text, (given) => {
      for (const passage of cutPassages(given)) {
        expect(passageTokens(given, passage)).toBeLessThanOrEqual(PASSAGE_TOKENS_MAX + 2);
        const before = given.codePointAt(Math.max(0, passage.start - 1)) ?? 0;
        expect(before > 0xffff && passage.start > 0).toBe(false);
      }
    }),
    { numRuns: 1000 },
  );
});

test('sentences stay whole where they fit', () => {
  const sentence = 'The quick brown fox jumps over the lazy dog and then rests for a while. ';
  for (const { start, end } of cutPassages(sentence.repeat(20))) {
    expect(sentence.repeat(20).slice(start, end)).toMatch(/^The .* while\.$/);
  }
});
