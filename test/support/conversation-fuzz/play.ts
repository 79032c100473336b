import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { FuzzedPlace } from './place.ts';
import { type Step, history } from './steps.ts';
import { type Counts, World } from './world.ts';

const SEED = Number(process.env['FUZZ_SEED'] ?? 30_110_009);
/** The steps of one history, a line of JSON each: they alone are played. */
const STEPS_FILE = process.env['FUZZ_STEPS'];
/** A failing history is made shorter for so long. */
const SHRINK_MS = Number(process.env['FUZZ_SHRINK_MS'] ?? 30_000);
/** At most this share of the requests may be late. */
const LATE_SHARE_MAX = 0.02;

type OpenPlace = () => Promise<FuzzedPlace>;

interface Run {
  /** Called once in the test. Its result opens a place for each history. */
  readonly openPlaces: () => Promise<OpenPlace>;
  /** The script that plays a history again. */
  readonly command: string;
  /** The number of requests, unless FUZZ_REQUESTS asks for another one. */
  readonly requests: number;
  /** The laws say nothing where nothing was placed and nothing left: how much a long run must have. */
  readonly least: Partial<Counts>;
}

/** A test that plays random histories until so many requests were sent, or the one history that a file holds. */
export function testHistories(run: Run): void {
  const requests = Number(process.env['FUZZ_REQUESTS'] ?? run.requests);
  const name =
    STEPS_FILE === undefined
      ? `${requests} requests of random histories keep every law (seed ${SEED})`
      : `the history in ${STEPS_FILE} keeps every law`;
  test(
    name,
    async () => {
      const counts = newCounts();
      const openPlace = await run.openPlaces();
      if (STEPS_FILE !== undefined) return play(openPlace, readSteps(STEPS_FILE), counts);
      for (let at = SEED; counts.requests < requests; at += 1) {
        await playOne({ ...run, openPlace }, at, counts);
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

async function playOne(
  { openPlace, command }: Run & { readonly openPlace: OpenPlace },
  seed: number,
  counts: Counts,
): Promise<void> {
  let shrinksUntil = Infinity;
  const property = fc.asyncProperty(history(), async (steps) => {
    // When the time is over, every shorter history counts as passed, which ends the shrinking.
    if (performance.now() > shrinksUntil) return;
    try {
      await play(openPlace, steps, counts);
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
To repeat it: npm run ${command} -- --steps ${file}
The shortest history that was found has ${steps.length} steps:
${lines}`,
  );
}

async function play(openPlace: OpenPlace, steps: readonly Step[], counts: Counts): Promise<void> {
  const place = await openPlace();
  try {
    const world = await World.open(place, counts);
    for (const step of steps) await world.take(step);
    world.countPrices();
  } finally {
    await place.close();
  }
}
