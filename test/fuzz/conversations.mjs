/**
 * `npm run fuzz:conversations`: random histories against the built program, for as many requests as are
 * asked for. `--seed` chooses the first history; a failure prints the command that repeats it.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    path: { type: 'string' },
    'shrink-seconds': { type: 'string', default: '300' },
  },
});

const test = 'test/proxy/conversation-fuzz.prop.test.ts';
const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'unit', '--retry', '0', test], {
  stdio: 'inherit',
  env: {
    ...process.env,
    FUZZ_REQUESTS: values.requests,
    FUZZ_SEED: values.seed,
    FUZZ_SHRINK_MS: String(Number(values['shrink-seconds']) * 1_000),
    ...(values.path !== undefined && { FUZZ_PATH: values.path }),
  },
});
process.exitCode = status ?? 1;
