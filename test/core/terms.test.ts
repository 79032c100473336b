import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasTerms, readTerms, termsOf } from '../../src/core/recall/terms.ts';

test.each([
  ['deployed the deployments', 'deploying'],
  ['memoryMode', 'memory_mode'],
  ['memory-mode', 'memoryMode'],
  ['the memory mode', 'MemoryMode'],
  ['src/core/recall/terms.ts', 'terms.ts'],
  ['HTTPServer', 'http server'],
  ['e-mails', 'email'],
  ["John's café", 'john CAFE'],
  ['SQLite 3.51.3', 'version 3.51.3'],
  ['marmalade-42', 'Marmalade 42'],
  ['東京都に行く', '東京'],
  ['ﬁle', 'file'],
])('%s and %s share a term', (one, other) => {
  const terms = new Set(termsOf(one));
  expect(termsOf(other).some((term) => terms.has(term))).toBe(true);
});

test.each(['the and of', 'hello', "don't you?", 'ok, thanks!', '', '... --- ...', 'x'.repeat(200)])(
  'says nothing: %s',
  (text) => expect(termsOf(text)).toEqual([]),
);

test('the parts of a compound are words, its whole form comes after all words', () => {
  expect(readTerms('read userName twice')).toEqual({
    words: ['read', 'user', 'name', 'twice'],
    wholes: ['usernam'],
  });
});

test.each([
  'cmd/cli/setup_hooks_test.go',
  '/home/kim/shop/setup_hooks_test.go',
  'C/setup-hooks-test.go',
])('a file is the same one with its folders: %s', (path) => {
  const [name = ''] = readTerms('setup_hooks_test.go').wholes;
  expect(readTerms(path).wholes).toContain(name);
  // Its words are those of the path, not twice.
  expect(readTerms(path).words.filter((word) => word === 'setup')).toHaveLength(1);
});

test('a path without a compound name has one whole form', () => {
  expect(readTerms('docs/guide').wholes).toEqual(['docsguid']);
  expect(readTerms('docs/').wholes).toEqual([]);
});

test('terms hold word characters only, so that the index can take them as they are', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (text) => {
      for (const term of termsOf(text)) {
        expect(term).toMatch(/^[\p{L}\p{M}\p{N}_]+$/u);
        expect(term).toBe(term.toLowerCase().toLowerCase());
      }
    }),
    { numRuns: 1000 },
  );
});

test('terms of a text are terms of it inside a longer text', () => {
  fc.assert(
    fc.property(fc.lorem(), fc.lorem(), (one, other) => {
      const all = new Set(termsOf(`${one}\n${other}`));
      expect(termsOf(one).every((term) => all.has(term))).toBe(true);
    }),
  );
});

// Generous by a factor of 20: a quadratic step takes minutes here, Intl.Segmenter took 39 s.
test.each(['a', 'a.', "a'", '\u0301', '東', 'aB', 'é', 'ö\u0323\u0301', '_', '𝒳'])(
  'half a million characters of %s take no quadratic time',
  (piece) => {
    termsOf(piece.repeat(500_000 / piece.length));
  },
);

test('whether a text has so many terms is told without reading on', () => {
  const texts = fc.string({
    unit: fc.constantFrom(
      'a',
      'Bee',
      ' ',
      'tea.cup',
      '_',
      '漢字',
      ' the ',
      ' words ',
      ' word ',
      'é',
    ),
  });
  fc.assert(
    fc.property(texts, fc.nat(6), (text, count) => {
      expect(hasTerms(text, count)).toBe(new Set(termsOf(text)).size >= count);
    }),
  );
});

test('a word has the same terms again, however many others came between', () => {
  const texts = ['memoryMode of src/core/terms.ts', 'Naïve cafés', '東京都の天気', "don't 3.51.3"];
  const first = texts.map((text) => readTerms(text));
  for (let at = 0; at < 10_000; at += 1) readTerms(`word${at} other_${at}`);
  expect(texts.map((text) => readTerms(text))).toEqual(first);
  expect(texts.map((text) => readTerms(text))).toEqual(first);
});

test('words that are remembered do not keep their texts', () => {
  setFlagsFromString('--expose-gc');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The flag above defines it.
  const collect = runInNewContext('gc') as () => void;
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < 2_000; at += 1) {
    readTerms(`${'x'.repeat(32_000)}${String(at).padStart(6, '0')} identifier_number_${at}`);
  }
  collect();
  // The texts have 64 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 << 20);
});
