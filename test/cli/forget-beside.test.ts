import { test } from 'vitest';
import { forgetBeside } from '../support/forget-beside.ts';

// The whole of it: `test/long/forget-beside.test.ts`.
const MEMORIES = Number(process.env['SVC_FORGET_MEMORIES'] ?? '2000');
const KILLS = Number(process.env['SVC_FORGET_KILLS'] ?? '3');
const SEED = Number(process.env['SVC_FORGET_SEED'] ?? '1');

test(
  'R26: a forget beside a busy proxy, killed at any moment, leaves the words nowhere',
  async () => {
    await forgetBeside({ memories: MEMORIES, kills: KILLS, seed: SEED });
  },
  300_000 + MEMORIES * 40,
);
