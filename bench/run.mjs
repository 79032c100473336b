/** `npm run bench`: the product beside the provider itself and a bare relay, in one run. See README.md. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { judge } from './bars.mjs';
import { Bench } from './lib/bench.mjs';
import { HostedMemory } from './lib/hosted-memory.mjs';
import { findPeers } from './lib/peers.mjs';
import { findFreePort, pinDriver, raisePriority } from './lib/processes.mjs';
import { ProviderProcess } from './lib/provider-process.mjs';
import { measureAll, report } from './lib/results.mjs';
import { bareTarget, directTarget, svcTarget } from './lib/targets.mjs';
import { abort } from './suites/abort.mjs';
import { commands } from './suites/commands.mjs';
import { crowd } from './suites/crowd.mjs';
import { curve } from './suites/curve.mjs';
import { fidelity } from './suites/fidelity.mjs';
import { grow } from './suites/grow.mjs';
import { ask, latency } from './suites/latency.mjs';
import { memory } from './suites/memory.mjs';
import { pace } from './suites/pace.mjs';
import { sse } from './suites/sse.mjs';
import { stall } from './suites/stall.mjs';
import { startup } from './suites/startup.mjs';

const SUITES = {
  latency,
  ask,
  grow,
  curve,
  sse,
  pace,
  crowd,
  memory,
  startup,
  commands,
  abort,
  fidelity,
  stall,
};

const USAGE = `npm run bench -- [options]
  --suite a,b     only these of ${Object.keys(SUITES).join(', ')}
  --quick         about a fifth of the work
  --rounds N      5 unless told
  --peers FOLDER  beside the peers installed there, see README.md
  --hosted-memory beside the product with a memory service, over TLS on loopback
  --bin FILE      start this program in place of bin/svc.js
  --first         as root: before everything else that the machine does
  --json FILE     all results
  --gate          exit 1 when a bar is missed
`;

const { values: options } = parseArgs({
  options: {
    suite: { type: 'string', default: Object.keys(SUITES).join(',') },
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    peers: { type: 'string' },
    'hosted-memory': { type: 'boolean', default: false },
    bin: { type: 'string', default: join(import.meta.dirname, '..', 'bin', 'svc.js') },
    first: { type: 'boolean', default: false },
    json: { type: 'string' },
    gate: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) process.stdout.write(USAGE);
else process.exitCode = await run();

/** The exit code: 0, 1 for a missed bar with --gate or a run that failed, 2 for wrong usage. */
async function run() {
  const unknown = options.suite.split(',').filter((name) => SUITES[name] === undefined);
  if (unknown.length > 0) {
    process.stderr.write(`Unknown suite: ${unknown.join(', ')}\n${USAGE}`);
    return 2;
  }
  pinDriver();
  if (options.first) raisePriority();
  const folder = join(import.meta.dirname, '..', '.bench', `run-${process.pid}`);
  mkdirSync(folder, { recursive: true });
  const provider = new ProviderProcess(await findFreePort());
  const hosted = options['hosted-memory'] ? new HostedMemory({ folder }) : undefined;
  const bench = await prepare(provider, folder, hosted);
  process.once('SIGINT', () => void cleanUp(bench, hosted).then(() => process.exit(130)));
  try {
    await provider.start(folder);
    for (const target of bench.started()) await begin(bench, target);
    const chosen = options.suite.split(',').map((name) => [name, SUITES[name]]);
    const suites = await measureAll(Object.fromEntries(chosen), bench);
    const results = { rounds: bench.rounds, suites };
    const code = report(judge(suites), { names: ['svc', 'bare'], results, options });
    await cleanUp(bench, hosted);
    // Logs and stores stay only where something went wrong.
    rmSync(folder, { recursive: true, force: true });
    return code;
  } catch (error) {
    process.stderr.write(`${error.stack}\n`);
    return 1;
  } finally {
    await cleanUp(bench, hosted);
  }
}

async function prepare(provider, folder, hosted) {
  const place = async () => ({ port: await findFreePort(), providerUrl: provider.url, folder });
  const targets = [
    directTarget(provider.address),
    await bareTarget(await place()),
    svcTarget({ ...(await place()), bin: options.bin }),
  ];
  if (hosted !== undefined) {
    const service = await hosted.start();
    targets.push(svcTarget({ ...(await place()), bin: options.bin, hosted: service }));
  }
  const peers = options.peers === undefined ? [] : findPeers(options.peers);
  for (const makePeer of peers) targets.push(makePeer(await place()));
  const isQuick = options.quick;
  return new Bench({
    provider,
    targets,
    folder,
    isQuick,
    rounds: isQuick ? 2 : Number(options.rounds),
  });
}

/** Peers may be broken on this machine: the run goes on without them. Ours may not. */
async function begin(bench, target) {
  process.stderr.write(`# start ${target.name}\n`);
  const failure = (await bench.start(target))
    ? await bench.warmUp(target)
    : `${target.name} did not start`;
  if (failure === undefined) return;
  if (!target.isPeer) throw new Error(failure);
  process.stderr.write(`# without it: ${failure}\n`);
  await bench.drop(target);
}

async function cleanUp(bench, hosted) {
  for (const target of bench.started()) await bench.stop(target);
  await hosted?.stop();
  await bench.provider.stop();
}
