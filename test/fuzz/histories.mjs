/** Plays random histories against the built program, as many as the person asks for. */
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

const KINDS = {
  conversations: {
    test: 'test/long/conversation-fuzz.prop.test.ts',
    about: 'Clients and providers that bind thinking, with restarts and kills.',
    numbers: { requests: 20_000, seed: 1, 'shrink-seconds': 300 },
  },
  hosted: {
    test: 'service/test/server/history-kills.test.ts',
    about: 'The same against two nodes of the service. PostgreSQL and Redis must be installed.',
    numbers: { requests: 2_000, seed: 1, 'shrink-seconds': 300 },
  },
  hooks: {
    test: 'test/long/hook-histories.prop.test.ts',
    about: 'A client with the hooks of svc, with the proxy, and with both.',
    numbers: { prompts: 1_000, seed: 1 },
  },
};
const MEANINGS = {
  requests: 'stop after so many requests',
  prompts: 'stop after so many prompts',
  seed: 'the first history',
  'shrink-seconds': 'seconds to look for a shorter history after a failure',
  steps: 'play the history of an earlier failure; each failure prints its file',
};

const [kind, ...args] = process.argv.slice(2);
process.exitCode = run(KINDS[kind]);

/** Runs the test of one kind. Returns the exit code: 1 for a failure, 2 for wrong usage. */
function run({ test, about, numbers }) {
  const names = [...Object.keys(numbers), 'steps'];
  const lines = names.map(
    (name) => `  --${name}: ${MEANINGS[name]} (${numbers[name] ?? 'none'})\n`,
  );
  const usage = `npm run fuzz:${kind} -- [options]\n\n${about}\n\n${lines.join('')}`;
  let values;
  try {
    const options = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
    ({ values } = parseArgs({ args, options: { ...options, help: { type: 'boolean' } } }));
    for (const name of Object.keys(numbers)) {
      const given = values[name];
      if (given !== undefined && !/^\d+$/.test(given)) throw new Error(`--${name} needs a number`);
    }
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage}`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(usage);
    return 0;
  }
  const given = { ...numbers, ...values };
  const { status } = spawnSync('npx', ['vitest', 'run', '--retry', '0', test], {
    stdio: 'inherit',
    env: {
      ...process.env,
      FUZZ_REQUESTS: given.requests,
      FUZZ_PROMPTS: given.prompts,
      FUZZ_SEED: given.seed,
      FUZZ_SHRINK_MS: String(Number(given['shrink-seconds']) * 1_000),
      ...(given.steps !== undefined && { FUZZ_STEPS: resolve(given.steps) }),
    },
  });
  return status ?? 1;
}
