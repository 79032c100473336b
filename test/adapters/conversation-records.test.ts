import { expect, test } from 'vitest';
import { Records } from '../../src/adapters/store/records.ts';
import { openEmptyMemory, plansOf } from '../support/query-plans.ts';

test.each([
  { conversation: 's1' },
  { conversation: 's1', since: 0 },
  { conversation: 's1', since: 0, until: 9, space: 'project' },
])('the records of a conversation are found in its own index: %o', (filter) => {
  const plans = plansOf(openEmptyMemory(), (seen) => {
    new Records(seen).list({ ...filter, limit: 500 });
  });
  expect(plans).toHaveLength(1);
  expect(plans[0]).toContain('records_by_conversation (space=? AND conversation=?)');
});
