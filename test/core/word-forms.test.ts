import { expect, test } from 'vitest';
import { termsOf } from '../../src/core/recall/terms.ts';
import { WORD_FORMS } from '../../src/core/recall/word-forms.ts';

test.each([
  ['what did we buy', 'we bought it'],
  ['choose a database', 'chosen db'],
  ['our repositories', 'the repo'],
  ['favourite colour', 'favorite color'],
  ['the children won', 'a child wins'],
  ['reqParams', 'request parameters'],
])('forms of one word meet: %s', (asked, said) => {
  const terms = termsOf(said);
  expect(termsOf(asked).filter((term) => terms.includes(term))).not.toEqual([]);
});

test('a form leads to one word, and that word to no other', () => {
  for (const word of WORD_FORMS.values()) expect(WORD_FORMS.has(word)).toBe(false);
});

test('what is more often another word stays itself', () => {
  for (const word of ['left', 'rose', 'led', 'ground']) expect(WORD_FORMS.has(word)).toBe(false);
});
