import { test } from 'vitest';
import { forgetBeside } from '../support/forget-beside.ts';

/**
 * The whole of what `test/cli/forget-beside.test.ts` has small: 50,000 memories, and 20 kills. It takes two
 * minutes on two cores.
 */
test('R26: a forget of 50,000 memories beside a busy proxy, killed 20 times, leaves the words nowhere', async () => {
  await forgetBeside({ memories: 50_000, kills: 20, seed: 7 });
}, 900_000);
