import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type HookCounts,
  hookHistory,
  type HookStep,
  playHistory,
} from '../support/hook-histories.ts';

/**
 * Random sessions of a client with svc's hooks, with the proxy, and with both: tools, interruptions, compactions,
 * forks, rewinds, resumes, hooks that are installed twice or come late, a transcript that lags behind, a locked
 * database, restarts. All three must keep the same memories: none lost, none twice. `npm run fuzz:hooks` runs more.
 */

const PROMPTS = Number(process.env['FUZZ_PROMPTS'] ?? 60);
const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_124);
/** The steps of one history, a line of JSON each: they alone are played. */
const STEPS = process.env['FUZZ_STEPS'];

test(
  `${PROMPTS} prompts of random histories are kept once, through hooks, proxy and both (seed ${SEED})`,
  async () => {
    const counts: HookCounts = { prompts: 0, records: 0, heard: 0, cut: 0 };
    if (STEPS !== undefined) {
      const lines = readFileSync(STEPS, 'utf8').trim().split('\n');
      const steps = lines.map((line): HookStep => JSON.parse(line));
      expect(await playHistory(steps, counts)).toEqual([]);
      return;
    }
    const broken: string[] = [];
    for (let run = 0; counts.prompts < PROMPTS; run += 1) {
      const [steps = []] = fc.sample(hookHistory(), { seed: SEED + run, numRuns: 1 });
      // oxlint-disable-next-line no-await-in-loop -- One history after the other.
      const faults = await playHistory(steps, counts);
      process.stdout.write(`seed ${SEED + run}: ${JSON.stringify(counts)}\n`);
      if (faults.length === 0) continue;
      const file = join(tmpdir(), `svc-hook-history-${SEED + run}.jsonl`);
      writeFileSync(file, steps.map((step) => `${JSON.stringify(step)}\n`).join(''));
      broken.push(`npm run fuzz:hooks -- --steps ${file}\n${faults.join('\n')}`);
    }
    expect(broken).toEqual([]);
    expect(counts.heard).toBeGreaterThan(PROMPTS / 20);
    expect(counts.cut).toBeGreaterThan(PROMPTS / 40);
  },
  600_000 + PROMPTS * 5_000,
);
