/** The commands that shells and clients run all the time: the CPU of a whole process, beside the least that one can be. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { median } from '../lib/statistics.mjs';

const RUNS = 41;
const QUICK_RUNS = 7;

/** `node -e 0` with the reader of command lines that svc has, used for one command. */
const COMMANDER = fileURLToPath(import.meta.resolve('commander')).replace('esm.mjs', 'index.js');
const BASE_SCRIPT = `const { Command } = require(${JSON.stringify(COMMANDER)});
const program = new Command();
program.command('nothing').action(() => {});
program.parse(['nothing'], { from: 'user' });`;

/** What the product's figures are compared with. */
export const BASE = 'node and commander';

export const commands = {
  title: 'CPU of one command, user and system, from start to end, ms.',

  async measure(bench) {
    // A home with a configuration of all three API styles.
    const { args, env } = bench.targets.find(({ name }) => name === 'svc');
    const bin = args[0];
    const calls = {
      'node -e 0': ['-e', '0'],
      [BASE]: ['-e', BASE_SCRIPT],
      'svc config token': [bin, 'config', 'token'],
      'svc print-config claude': [bin, 'print-config', 'claude', '--quiet'],
      'svc print-config codex': [bin, 'print-config', 'codex', '--quiet'],
    };
    const times = new Map(Object.keys(calls).map((name) => [name, []]));
    for (let run = 0; run < bench.choose(QUICK_RUNS, RUNS); run += 1) {
      // Turn by turn, there and back: what else the machine does meets all of them.
      const names = Object.keys(calls);
      for (const name of run % 2 === 0 ? names : names.toReversed()) {
        times.get(name).push(cpuMsOf(calls[name], env));
      }
    }
    return Object.fromEntries(
      [...times].map(([name, all]) => [name, { cpuMs: median(all), leastMs: Math.min(...all) }]),
    );
  },

  columns: ['command', 'CPU', 'least'],
  row: ({ cpuMs, leastMs }) => [cpuMs, leastMs],
};

/** bash reads what the system counted for its child when it ended. stdout is a pipe, as in `$(…)`. */
function cpuMsOf(args, environment) {
  const script = 'TIMEFORMAT="%3U %3S"; time "$@" > >(cat >/dev/null)';
  const { NODE_EXTRA_CA_CERTS: _, ...inherited } = process.env;
  const output = execFileSync(
    'bash',
    ['-c', `{ ${script}; } 2>&1`, 'bash', process.execPath, ...args],
    { encoding: 'utf8', env: { ...inherited, ...environment } },
  );
  const [user, system] = output.trim().split('\n').at(-1).split(' ').map(Number);
  if (!Number.isFinite(user + system)) throw new Error(`${args.join(' ')} said: ${output}`);
  return (user + system) * 1000;
}
