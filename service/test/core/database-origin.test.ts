import { expect, test } from 'vitest';
import {
  type DatabaseOrigin,
  judgeOrigin,
  originText,
  readOrigin,
} from '../../src/core/database-origin.ts';

const BEFORE: DatabaseOrigin = { system: '7.16400', timeline: '00000001', isSynchronous: true };
const PROMOTED = { ...BEFORE, timeline: '00000002' };

interface Case {
  readonly before: DatabaseOrigin | undefined;
  readonly now: DatabaseOrigin;
  readonly trusts?: boolean;
  readonly verdict: string;
}

test.each<[string, Case]>([
  ['nothing was noted', { before: undefined, now: BEFORE, verdict: 'first' }],
  [
    'nothing changed',
    { before: BEFORE, now: { ...BEFORE, isSynchronous: false }, verdict: 'same' },
  ],
  ['a synchronous standby was promoted', { before: BEFORE, now: PROMOTED, verdict: 'promoted' }],
  [
    'the operator trusts no promotion',
    { before: BEFORE, now: PROMOTED, trusts: false, verdict: 'replaced' },
  ],
  // Commits before it waited for nobody, whatever the new primary does.
  [
    'an asynchronous one was promoted',
    { before: { ...BEFORE, isSynchronous: false }, now: PROMOTED, verdict: 'replaced' },
  ],
  [
    'another cluster',
    { before: BEFORE, now: { ...BEFORE, system: '8.16400' }, verdict: 'replaced' },
  ],
  [
    'a dump was read in',
    { before: BEFORE, now: { ...BEFORE, system: '7.2' }, verdict: 'replaced' },
  ],
])('%s', (_, { before, now, trusts = true, verdict }) => {
  expect(judgeOrigin(before, now, trusts)).toBe(verdict);
});

test('what is noted is read as it was; anything else is nothing', () => {
  expect(readOrigin(originText(BEFORE))).toEqual(BEFORE);
  expect([undefined, '', '{', '[]', '{"system":1}'].map(readOrigin)).toEqual(
    Array(5).fill(undefined),
  );
});
