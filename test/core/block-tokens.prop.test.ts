import * as fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, test } from 'vitest';
import { tokensAtMost } from '../../src/core/recall/block-tokens.ts';
import { writeRecallBlock } from '../../src/core/recall/recall-block.ts';

const from = (low: number, high: number): fc.Arbitrary<string> =>
  fc.integer({ min: low, max: high }).map((code) => String.fromCodePoint(code));
const many = (piece: fc.Arbitrary<string>, count: number, between = ''): fc.Arbitrary<string> =>
  fc.array(piece, { minLength: count, maxLength: count }).map((all) => all.join(between));
const one = (...pieces: readonly fc.Arbitrary<string>[]): fc.Arbitrary<string> =>
  fc.oneof(...pieces);
const of = (letters: string): fc.Arbitrary<string> => fc.constantFrom(...letters.split(''));

const small = from(0x61, 0x7a);
const capital = from(0x41, 0x5a);
const word = fc.integer({ min: 5, max: 11 }).chain((letters) => many(small, letters));
const camel = fc.tuple(capital, word).map((parts) => parts.join(''));
const marks = fc.integer({ min: 1, max: 5 }).chain((count) => many(from(0x300, 0x36f), count));
const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Texts as they are found where nobody expected them; each long enough to be a line of a block. */
const KINDS: Readonly<Record<string, fc.Arbitrary<string>>> = {
  emojis: many(from(0x1f300, 0x1faff), 30),
  'families and flags': many(
    one(
      from(0x1f1e6, 0x1f1ff),
      fc.tuple(from(0x1f466, 0x1f47a), from(0x1f3fb, 0x1f3ff)).map((pair) => pair.join('\u200d')),
    ),
    20,
  ),
  zalgo: many(
    fc.tuple(small, marks).map((pair) => pair.join('')),
    30,
  ),
  'combining marks': many(
    fc
      .tuple(fc.constantFrom('a', 'e', 'o', 'n', 'и'), from(0x300, 0x30a))
      .map((pair) => pair.join('')),
    30,
  ),
  'letters of mathematics': many(from(0x1d400, 0x1d7ff), 40),
  'wide forms': many(from(0xff01, 0xff5e), 40),
  'mixed scripts': many(
    one(
      small,
      from(0x430, 0x44f),
      from(0x3b1, 0x3c9),
      from(0x5d0, 0x5ea),
      from(0x627, 0x64a),
      from(0x4e00, 0x9fa5),
      from(0xac00, 0xd7a3),
    ),
    60,
  ),
  'scripts of few': many(
    one(from(0x1200, 0x1248), from(0x13a0, 0x13ef), from(0x1780, 0x17a2), from(0xa000, 0xa400)),
    40,
  ),
  'seldom Han': many(one(from(0x3400, 0x4db5), from(0x20000, 0x2a6d6)), 40),
  'any Han': many(from(0x4e00, 0x9fa5), 60),
  braille: many(from(0x2800, 0x28ff), 40),
  'old Cyrillic': many(from(0x460, 0x481), 40),
  phonetics: many(from(0x250, 0x2af), 40),
  'camel case': many(many(camel, 5), 6, ' '),
  'snake case': many(many(word, 5, '_'), 6, ' '),
  'capitals and lines': many(many(many(capital, 6), 4, '_'), 6, ' '),
  'a long row of letters': many(many(small, 50), 4, ' '),
  'odd spellings': many(word, 30, ' '),
  hex: many(many(of('0123456789abcdef'), 64), 3, ' '),
  base64: many(many(of(BASE64), 80), 3, '\n'),
};

describe.each(Object.entries(KINDS))('%s', (_, texts) => {
  test('takes no more tokens than it says', () => {
    fc.assert(
      fc.property(texts, (text) => {
        // As for languages: prices are averages, and a block is many lines.
        expect(tokensAtMost(text) * 1.03).toBeGreaterThanOrEqual(countTokens(text));
      }),
      { numRuns: 60 },
    );
  });

  test('fills no block over its limit', () => {
    fc.assert(
      fc.property(fc.array(texts, { minLength: 8, maxLength: 8 }), (lines) => {
        const passages = lines.map((line, day) => ({
          text: line,
          role: 'user' as const,
          at: day * 86_400_000,
          client: 'codex',
          space: 'default',
        }));
        const { text } = writeRecallBlock(passages, 512);
        expect(countTokens(text)).toBeLessThanOrEqual(512);
      }),
      { numRuns: 15 },
    );
  });
});
