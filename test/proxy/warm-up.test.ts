import { expect, test } from 'vitest';
import { DIALECTS } from '../../src/core/conversation/dialect.ts';
import { warmUp } from '../../src/proxy/warm-up.ts';

test.each(DIALECTS)('%s: what is warmed is what a long request needs', async (dialect) => {
  // Two readings of 14 and 15 rounds, of which the last 4 stay.
  expect(await warmUp(dialect)).toBe(10 + 11);
});
