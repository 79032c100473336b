/**
 * `npm run fuzz:hooks`: random histories of a client with svc's hooks, with the proxy, and with both, for as many prompts
 * as are asked for. `--seed` chooses the first history. A failure writes its steps to a file, which `--steps FILE` plays.
 */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    prompts: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string' },
  },
});

const test = 'test/long/hook-histories.prop.test.ts';
const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'long', '--retry', '0', test], {
  stdio: 'inherit',
  env: {
    ...process.env,
    FUZZ_PROMPTS: values.prompts,
    FUZZ_SEED: values.seed,
    ...(values.steps !== undefined && { FUZZ_STEPS: resolve(values.steps) }),
  },
});
process.exitCode = status ?? 1;
