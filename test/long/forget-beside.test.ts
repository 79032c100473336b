import { test } from 'vitest';
import { forgetBeside } from '../support/forget-beside.ts';

/**
 * A larger one than that of `test/cli/forget-beside.test.ts`. SVC_FORGET_MEMORIES=50000 SVC_FORGET_KILLS=20 asks for
 * the whole, which takes two minutes on two cores.
 */
const MEMORIES = Number(process.env['SVC_FORGET_MEMORIES'] ?? '20000');
const KILLS = Number(process.env['SVC_FORGET_KILLS'] ?? '8');
const SEED = Number(process.env['SVC_FORGET_SEED'] ?? '7');

test('R26: a forget of many memories beside a busy proxy, killed again and again, leaves the words nowhere', async () => {
  await forgetBeside({ memories: MEMORIES, kills: KILLS, seed: SEED });
}, 900_000);
