import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Step, history } from '../support/conversation-fuzz/steps.ts';
import { type Counts, World } from '../support/conversation-fuzz/world.ts';

/**
 * Random histories against the built program, two processes with one store: conversations in three
 * dialects are continued, edited, rewound, forked, compacted and resumed, with and without ids, with
 * changes of the model and of the memory header, through one proxy, the other or none, while the proxies
 * are restarted and killed, their database is locked, and an import runs. No body may be invalid, no
 * prefix may break that no batch has priced, nothing may leave that is not stored, and no memory of
 * another project may appear. The provider is strict (test/support/strict-provider): it may refuse
 * nothing and drop no thinking that it would not refuse or drop without svc.
 * `npm run fuzz:conversations` runs it for longer.
 */

const REQUESTS = Number(
  process.env['FUZZ_REQUESTS'] ?? (process.env['CI'] === undefined ? 200 : 2_000),
);
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_122);
/** The steps of one history, a line of JSON each: they alone are played. */
const STEPS = process.env['FUZZ_STEPS'];
/** A failing history is made shorter for so long. */
const SHRINK_MS = Number(process.env['FUZZ_SHRINK_MS'] ?? 30_000);

const NAME =
  STEPS === undefined
    ? `${REQUESTS} requests of random histories keep every law (seed ${SEED})`
    : `the history in ${STEPS} keeps every law`;

test(
  NAME,
  async () => {
    const counts = newCounts();
    if (STEPS !== undefined) return play(readSteps(STEPS), counts);
    for (let run = 0; counts.requests < REQUESTS; run += 1) {
      await playOne(SEED + run, counts);
      process.stdout.write(`seed ${SEED + run}: ${JSON.stringify(counts)}\n`);
    }
    // The laws say nothing where nothing was placed and nothing left. One history may have neither.
    if (REQUESTS < 200) return;
    expect(counts.blocks).toBeGreaterThan(20);
    expect(counts.looks).toBeGreaterThan(10);
    expect(counts.batches).toBeGreaterThan(1);
    expect(counts.compared).toBeGreaterThan(300);
  },
  600_000 + REQUESTS * 2_000,
);

/** Lines that are no steps are passed over, so a whole log of a failure can be given. */
function readSteps(file: string): readonly Step[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  const steps = lines.flatMap((line): Step[] => {
    const [json] = /^\{"kind".*\}/.exec(line) ?? [];
    return json === undefined ? [] : [JSON.parse(json)];
  });
  expect(steps).not.toEqual([]);
  return steps;
}

function newCounts(): Counts {
  return {
    requests: 0,
    compared: 0,
    blocks: 0,
    looks: 0,
    stubs: 0,
    exchanges: 0,
    batches: 0,
    stops: 0,
    refusedDirectly: 0,
    refusedAway: 0,
    price: 0,
    directPrice: 0,
  };
}

async function playOne(seed: number, counts: Counts): Promise<void> {
  let shrinksUntil = Infinity;
  const property = fc.asyncProperty(history(), async (steps) => {
    // When the time is over, every shorter history counts as passed, which ends the shrinking.
    if (performance.now() > shrinksUntil) return;
    try {
      await play(steps, counts);
    } catch (error) {
      shrinksUntil = Math.min(shrinksUntil, performance.now() + SHRINK_MS);
      throw error;
    }
  });
  const result = await fc.check(property, { seed, numRuns: 1 });
  if (!result.failed || result.counterexample === null) return;
  const [steps] = result.counterexample;
  const lines = steps.map((step) => JSON.stringify(step)).join('\n');
  const file = join(tmpdir(), `svc-fuzz-${seed}-${process.pid}.jsonl`);
  writeFileSync(file, `${lines}\n`);
  throw new Error(
    `${String(result.errorInstance)}
To repeat it: npm run fuzz:conversations -- --steps ${file}
The shortest history that was found has ${steps.length} steps:
${lines}`,
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
