import { expect, test } from 'vitest';
import { marksOf } from '../../src/adapters/store/recall-marks.ts';
import { openEmptyMemory, plansOf } from '../support/query-plans.ts';

const SPACE = { id: 1, name: 'project', passages: 1, terms: 1, next: 2 };

test('a recall looks for pinned records among the pins, and not among all records of the space', async () => {
  const plans = plansOf(openEmptyMemory(), (seen) => {
    const marks = marksOf(seen);
    marks.never([SPACE]);
    marks.always([SPACE], []);
  });
  expect(plans).toHaveLength(2);
  for (const plan of plans) expect(plan).toContain('marks_by_pin');
});
