import { expect, test } from 'vitest';
import { STANDING_TERMS, standingIn, standingNow } from '../../src/core/recall/standing.ts';
import { termsOf } from '../../src/core/recall/terms.ts';

test.each([
  'Always use pnpm here.',
  'In this repository always use pnpm, never npm or yarn.',
  'Never touch anything under src/generated, it is written by the generator.',
  'please never use Bootstrap in this project',
  'From now on, always write log messages in lower case.',
  'You must never force-push to main.',
  '- always run the linter before you commit',
  'When you write Python, always add type hints.',
])('a standing instruction: %s', (text) => {
  expect(standingIn(text)).toEqual([text]);
  expect(termsOf(text).some((term) => (STANDING_TERMS as readonly string[]).includes(term))).toBe(
    true,
  );
});

test.each([
  'I always use pnpm.',
  'We always go to the beach in summer.',
  'Never give up!',
  'She never writes back.',
  'It never runs on Windows.',
  'Should I always use pnpm?',
  'Always nice to see you.',
  'The worker never started because the queue was full.',
  'never mind',
  'use pnpm',
  `Always use ${'a very long story '.repeat(20)}`,
])('no standing instruction: %s', (text) => {
  expect(standingIn(text)).toEqual([]);
});

test('only the sentence is one, not what is said around it', () => {
  expect(standingIn('The build broke. Never run npm install here. What now?')).toEqual([
    'Never run npm install here.',
  ]);
});

test('of several about the same thing the last one holds, and three at most', () => {
  const said = [
    { text: 'Always use npm in this project.', at: 1 },
    { text: 'Always use pnpm in this project.', at: 2 },
    { text: 'Never touch src/generated.', at: 3 },
    { text: 'Always write commit messages in English.', at: 4 },
    { text: 'Never mock the clock.', at: 5 },
  ];
  expect(standingNow(said).map(({ at }) => at)).toEqual([5, 4, 3]);
  expect(standingNow(said.slice(0, 3)).map(({ at }) => at)).toEqual([3, 2]);
});

test('the work is linear in hostile text', () => {
  // A regular expression that backtracks would not come back from these.
  for (const text of ['in '.repeat(20_000), `when ${', '.repeat(20_000)}`, 'a. '.repeat(50_000)]) {
    expect(standingIn(text)).toEqual([]);
  }
});
