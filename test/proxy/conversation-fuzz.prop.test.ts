import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Step, history } from '../support/conversation-fuzz/steps.ts';
import { type Counts, World } from '../support/conversation-fuzz/world.ts';

/**
 * Random histories against the built program, a process of its own with its store: conversations in
 * three dialects are continued, edited, rewound, forked and resumed, with and without ids, while the
 * proxy is restarted and killed, its database is locked, and an import runs. No body may be invalid, no
 * prefix may break that no batch has priced, nothing may leave that is not stored, and no memory of
 * another project may appear. `npm run fuzz:conversations` runs it for longer.
 */

const REQUESTS = Number(process.env['FUZZ_REQUESTS'] ?? 200);
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_122);
const PATH = process.env['FUZZ_PATH'];
/** A failing history is made shorter for so long. */
const SHRINK_MS = Number(process.env['FUZZ_SHRINK_MS'] ?? 30_000);

test(
  `${REQUESTS} requests of random histories keep every law (seed ${SEED})`,
  async () => {
    const counts = {
      requests: 0,
      compared: 0,
      blocks: 0,
      stubs: 0,
      exchanges: 0,
      batches: 0,
      stops: 0,
    };
    for (let run = 0; counts.requests < REQUESTS; run += 1) {
      await playOne(SEED + run, counts);
      process.stdout.write(`seed ${SEED + run}: ${JSON.stringify(counts)}\n`);
    }
    // The laws say nothing where nothing was placed and nothing left. One history may have neither.
    if (REQUESTS < 200) return;
    expect(counts.blocks).toBeGreaterThan(20);
    expect(counts.batches).toBeGreaterThan(1);
    expect(counts.compared).toBeGreaterThan(300);
  },
  600_000 + REQUESTS * 2_000,
);

async function playOne(seed: number, counts: Counts): Promise<void> {
  let shrinksUntil = Infinity;
  let isMended = false;
  const property = fc.asyncProperty(history(), async (steps) => {
    // When the time is over, every shorter history counts as passed, which ends the shrinking. So it
    // does when the history to repeat has passed: behind it stand all that are nearly the same.
    if (isMended || performance.now() > shrinksUntil) return;
    try {
      await play(steps, counts);
      isMended = PATH !== undefined && shrinksUntil === Infinity;
    } catch (error) {
      shrinksUntil = Math.min(shrinksUntil, performance.now() + SHRINK_MS);
      throw error;
    }
  });
  const replay = PATH === undefined ? {} : { path: PATH };
  const result = await fc.check(property, { seed, numRuns: 1, ...replay });
  if (!result.failed || result.counterexample === null) return;
  const [steps] = result.counterexample;
  const path = result.counterexamplePath ?? '0';
  throw new Error(
    `${String(result.errorInstance)}
To repeat it: npm run fuzz:conversations -- --requests 1 --seed ${seed} --path ${path}
The shortest history that was found has ${steps.length} steps:
${steps.map((step) => JSON.stringify(step)).join('\n')}`,
  );
}

async function play(steps: readonly Step[], counts: Counts): Promise<void> {
  const world = await World.open(counts);
  try {
    for (const step of steps) await world.take(step);
  } finally {
    await world.close();
  }
}
