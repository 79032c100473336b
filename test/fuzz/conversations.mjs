/**
 * `npm run fuzz:conversations`: random histories against the built program, for as many requests as are
 * asked for. `--seed` chooses the first history. A failure writes the steps of its history to a file, one
 * a line, and prints the command that plays them again: `--steps FILE`.
 */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    steps: { type: 'string' },
    'shrink-seconds': { type: 'string', default: '300' },
  },
});

const test = 'test/long/conversation-fuzz.prop.test.ts';
const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'long', '--retry', '0', test], {
  stdio: 'inherit',
  env: {
    ...process.env,
    FUZZ_REQUESTS: values.requests,
    FUZZ_SEED: values.seed,
    FUZZ_SHRINK_MS: String(Number(values['shrink-seconds']) * 1_000),
    ...(values.steps !== undefined && { FUZZ_STEPS: resolve(values.steps) }),
  },
});
process.exitCode = status ?? 1;
