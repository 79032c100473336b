import { expect, test } from 'vitest';
import { aboutNames, hasName, namesOf } from '../../src/core/recall/session-names.ts';

const said = (answered: string, asked = '') => ({ asked, answered });
const namesIn = (text: string) => namesOf([[said(text)]])[0];

test.each([
  ['Opened `src/quay/planner.ts:12-40` and `readTides(day)`.', ['planner.ts', 'readTides()']],
  ['The file quay/tide-planner.ts and its README.md', ['tide-planner.ts', 'README.md']],
  ['Set `TIDE_PORT` and run `npm run tides`.', ['TIDE_PORT', 'npm run tides']],
  ['Pushed `3f2a91bc` with `git commit` to `quay/`.', []],
  ['The `quay` is `open`, and `x` stands behind `y`.', []],
  ['Typed `/review`, `{ port: 1 }`, `a | b` and `one two three four`.', []],
])('names are those of files, functions, settings and commands: %s', (text, names) => {
  expect(namesIn(text)).toEqual(names);
});

test('first comes what most texts of the session have and no other session, and what the prompt names', () => {
  const session = [said('`quay.ts` and `tides.ts` and `berth.ts`'), said('`tides.ts`, `quay.ts`')];
  const other = [said('`quay.ts`')];
  expect(namesOf([session, other])[0]).toEqual(['tides.ts', 'quay.ts', 'berth.ts']);
  const prompt = new Map([['berth', 1]]);
  expect(namesOf([session, other], prompt)[0]?.slice(0, 2)).toEqual(['tides.ts', 'berth.ts']);
  expect(namesIn('`test_quay.ts` and `TestTides` and `quay.spec.ts` and `berth.ts`')?.[0]).toBe(
    'berth.ts',
  );
});

test('a line has at most three names, each of another thing, within the limit', () => {
  const names = ['planner.ts', 'planner_test.ts', 'Planner()', 'tides.ts', 'quay.ts', 'berth.ts'];
  expect(aboutNames(names, { tokensMax: 36 })).toBe('about `planner.ts`, `tides.ts`, `quay.ts`');
  expect(aboutNames(names, { tokensMax: 36, most: 1 })).toBe('about `planner.ts`');
  expect(aboutNames(names, { tokensMax: 2 })).toBe('');
});

test('a line has a name without its brackets too', () => {
  expect(hasName('Moved readTides to the quay.', ['readTides()'])).toBe(true);
  expect(hasName('Moved it.', ['readTides()'])).toBe(false);
  expect(hasName('Moved it.', [])).toBe(false);
});
