import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FuzzedPlace } from './place.ts';
import { type Step, history } from './steps.ts';
import { type Counts, World } from './world.ts';

/** The run that the environment asks for. */
export const ASKED = {
  requests: Number(process.env['FUZZ_REQUESTS'] ?? (process.env['CI'] === undefined ? 200 : 2_000)),
  seed: Number(process.env['FUZZ_SEED'] ?? 20_261_122),
  /** The steps of one history, a line of JSON each: they alone are played. */
  stepsFile: process.env['FUZZ_STEPS'],
  /** A failing history is made shorter for so long. */
  shrinkMs: Number(process.env['FUZZ_SHRINK_MS'] ?? 30_000),
};

/** Of all requests, where the memory is a database of its own. */
const LATE_SHARE_MAX = 0.02;

interface Run {
  readonly openPlace: () => Promise<FuzzedPlace>;
  /** The script that plays a history again. */
  readonly command: string;
  readonly requests: number;
  readonly seed: number;
  readonly stepsFile: string | undefined;
  readonly shrinkMs: number;
  /** The laws say nothing where nothing was placed and nothing left: how much a long run must have. */
  readonly least: Partial<Counts>;
}

/** A test that plays random histories until so many requests were sent, or the one history that a file holds. */
export function testHistories(run: Run): void {
  const { requests, seed, stepsFile } = run;
  const name =
    stepsFile === undefined
      ? `${requests} requests of random histories keep every law (seed ${seed})`
      : `the history in ${stepsFile} keeps every law`;
  test(
    name,
    async () => {
      const counts = newCounts();
      if (stepsFile !== undefined) return play(run, readSteps(stepsFile), counts);
      for (let at = seed; counts.requests < requests; at += 1) {
        await playOne(run, at, counts);
        process.stdout.write(`seed ${at}: ${JSON.stringify(counts)}\n`);
      }
      expect(counts.late).toBeLessThanOrEqual(Math.ceil(counts.requests * LATE_SHARE_MAX));
      // One history may have neither blocks nor batches.
      if (requests < 200) return;
      for (const [what, least] of Object.entries(run.least)) {
        expect(counts[what as keyof Counts], what).toBeGreaterThan(least);
      }
    },
    600_000 + requests * 2_000,
  );
}

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
    late: 0,
    refusedDirectly: 0,
    refusedAway: 0,
    price: 0,
    directPrice: 0,
  };
}

async function playOne(run: Run, seed: number, counts: Counts): Promise<void> {
  let shrinksUntil = Infinity;
  const property = fc.asyncProperty(history(), async (steps) => {
    // When the time is over, every shorter history counts as passed, which ends the shrinking.
    if (performance.now() > shrinksUntil) return;
    try {
      await play(run, steps, counts);
    } catch (error) {
      shrinksUntil = Math.min(shrinksUntil, performance.now() + run.shrinkMs);
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
To repeat it: npm run ${run.command} -- --steps ${file}
The shortest history that was found has ${steps.length} steps:
${lines}`,
  );
}

async function play({ openPlace }: Run, steps: readonly Step[], counts: Counts): Promise<void> {
  const world = await World.open(await openPlace(), counts);
  try {
    for (const step of steps) await world.take(step);
  } finally {
    await world.close();
  }
}
