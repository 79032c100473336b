/**
 * `npm run bench:profile`: where the CPU time of the product goes, function by function, in its main
 * thread and in the store's. See README.md.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Bench } from './lib/bench.mjs';
import { renumber, SIZES } from './lib/bodies.mjs';
import { sleep } from './lib/clock.mjs';
import { Connection } from './lib/connection.mjs';
import { findFreePort, pinDriver, threadCpuMsOf } from './lib/processes.mjs';
import { ProviderProcess } from './lib/provider-process.mjs';
import { drawTable } from './lib/statistics.mjs';
import { bareTarget, svcTarget } from './lib/targets.mjs';
import { readSamples } from './profile/samples.mjs';

const root = join(import.meta.dirname, '..');
const PROBE = join(import.meta.dirname, 'profile', 'probe.cjs');
const USAGE = `npm run bench:profile -- [options]
  --size a,b         of ${Object.keys(SIZES).join(', ')}
  --newest question  the newest item is a person's question; a tool's output unless told
  --requests N       200 unless told
  --events N         of each streamed answer
  --pause MS         between two requests
  --cpu              only CPU and full garbage collections, beside the bare relay: a profile costs time itself
  --bin FILE         with --cpu: another build
  --rounds N         with --cpu: the lowest of so many, 3 unless told
  --node "FLAGS"     for the Node that runs the product
  --lines N          of each table
  --keep             keep the profiles, for a viewer
`;

const { values: options } = parseArgs({
  options: {
    size: { type: 'string', default: '2k,100k,1m,4m' },
    newest: { type: 'string', default: 'output' },
    requests: { type: 'string', default: '200' },
    rounds: { type: 'string', default: '3' },
    events: { type: 'string' },
    pause: { type: 'string', default: '0' },
    node: { type: 'string', default: '' },
    bin: { type: 'string', default: join(root, 'bin', 'svc.js') },
    cpu: { type: 'boolean', default: false },
    lines: { type: 'string', default: '32' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const folder = join(root, '.bench', `profile-${process.pid}`);
if (options.help) process.stdout.write(USAGE);
else process.exitCode = await run();

async function run() {
  const unknown = options.size.split(',').filter((size) => SIZES[size] === undefined);
  if (unknown.length > 0) {
    process.stderr.write(`Unknown size: ${unknown.join(', ')}\n${USAGE}`);
    return 2;
  }
  mkdirSync(folder, { recursive: true });
  pinDriver();
  const provider = new ProviderProcess(await findFreePort());
  const bench = await prepare(provider);
  process.once('SIGINT', () => void end(bench, provider).then(() => process.exit(130)));
  try {
    await provider.start(folder);
    for (const target of bench.targets) {
      if (!(await bench.start(target))) throw new Error(`${target.name} did not start`);
      const failure = await bench.warmUp(target);
      if (failure !== undefined) throw new Error(failure);
    }
    for (const size of options.size.split(',')) await measure(bench, size);
    return 0;
  } finally {
    await end(bench, provider);
  }
}

async function end(bench, provider) {
  for (const target of bench.targets) await bench.stop(target);
  await provider.stop();
  if (!options.keep) rmSync(folder, { recursive: true, force: true });
}

async function prepare(provider) {
  const place = async () => ({ port: await findFreePort(), providerUrl: provider.url, folder });
  const bare = await bareTarget(await place());
  const bin = options.cpu ? options.bin : buildWithMaps();
  const svc = svcTarget({ ...(await place()), bin });
  const flags = options.node.split(' ').filter(Boolean);
  svc.args = [...flags, ...svc.args];
  if (options.cpu) {
    // Counts do not depend on what else the machine does. V8 writes a line for each collection.
    for (const target of [bare, svc]) target.args = ['--trace-gc', ...target.args];
  } else {
    svc.args = ['--require', PROBE, ...svc.args];
    svc.env = { ...svc.env, SVC_PROFILE_FOLDER: folder };
  }
  return new Bench({ provider, targets: [bare, svc], folder, isQuick: false, rounds: 1 });
}

/** The product as users get it, and maps beside it that say where each line of the bundle comes from. */
function buildWithMaps() {
  const copy = join(folder, 'product');
  mkdirSync(copy, { recursive: true });
  for (const name of ['src', 'node_modules', 'package.json', 'tsconfig.json']) {
    symlinkSync(join(root, name), join(copy, name));
  }
  for (const name of ['bin', 'tsup.config.ts']) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
  const tsup = join(root, 'node_modules', 'tsup', 'dist', 'cli-default.js');
  execFileSync(process.execPath, [tsup, '--sourcemap', '--silent'], { cwd: copy });
  return join(copy, 'bin', 'svc.js');
}

async function measure(bench, size) {
  const runs = new Map(bench.targets.map(({ name }) => [name, []]));
  const rounds = options.cpu ? Number(options.rounds) : 1;
  for (let round = 0; round < rounds; round += 1) {
    for (const target of bench.inOrder(round)) {
      runs.get(target.name).push(await measureOne(bench, target, size));
    }
  }
  const [bare, svc] = ['bare', 'svc'].map((name) => lowest(runs.get(name)));
  const ratio = (one, other) => (one / other).toFixed(2);
  process.stdout.write(
    `\n## ${size}, newest: ${options.newest}\n\nCPU ms a request: bare ${bare.all.toFixed(2)}; ` +
      `svc ${svc.all.toFixed(2)} (${ratio(svc.all, bare.all)}), its main thread ${svc.main.toFixed(2)}\n`,
  );
  if (options.cpu) process.stdout.write(collectionsText({ bare, svc }));
  else printProfiles(size);
}

function collectionsText({ bare, svc }) {
  const text = ({ full, young }) => `${full} and ${young}`;
  return `Full and young garbage collections in ${options.requests} requests: bare ${text(bare)}; svc ${text(svc)}\n`;
}

function lowest(runs) {
  const of = (key) => Math.min(...runs.map((counts) => counts[key]));
  return { all: of('all'), main: of('main'), full: of('full'), young: of('young') };
}

async function measureOne(bench, target, size) {
  const count = Number(options.requests);
  const connection = new Connection(target);
  const events = options.events === undefined ? {} : { events: Number(options.events) };
  await bench.provider.setMode({ kind: 'sse', ...events });
  const request = bench.requestFor(target, { size, newest: options.newest });
  // The first of a conversation is read whole; this is about the later ones.
  for (let at = 0; at < 3; at += 1) await connection.request(renumber(request));
  await sleep(500);
  const isProfiled = target.name === 'svc' && !options.cpu;
  if (isProfiled) await toggle(target);
  const before = { ...cpuOf(target), ...collectionsOf(target) };
  for (let at = 0; at < count; at += 1) {
    const { status, failure } = await connection.request(renumber(request));
    if (status !== 200) throw new Error(`${target.name} answered ${status} ${failure ?? ''}`);
    if (options.pause !== '0') await sleep(Number(options.pause));
  }
  const after = { ...cpuOf(target), ...collectionsOf(target) };
  if (isProfiled) await toggle(target);
  connection.close();
  return {
    all: (after.all - before.all) / count,
    main: (after.main - before.main) / count,
    full: after.full - before.full,
    young: after.young - before.young,
  };
}

/** Of all threads, since the start of the process; zero without `--trace-gc`. */
function collectionsOf({ name }) {
  const log = readFileSync(join(folder, `${name}.log`), 'utf8');
  const countOf = (kind) => log.split(kind).length - 1;
  return { full: countOf(': Mark-Compact'), young: countOf(': Scavenge') };
}

function cpuOf({ process: { pid } }) {
  const threads = threadCpuMsOf(pid);
  return { all: threads.reduce((sum, { ms }) => sum + ms, 0), main: threads[0]?.ms ?? 0 };
}

async function toggle({ process: { pid } }) {
  process.kill(pid, 'SIGUSR2');
  // To write a profile takes a while.
  await sleep(1500);
}

function printProfiles(size) {
  const count = Number(options.requests);
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'))) {
    const path = join(folder, file);
    const profile = JSON.parse(readFileSync(path, 'utf8'));
    if (options.keep) cpSync(path, join(folder, `${size}-${file}.json`));
    rmSync(path);
    const { busyMs, functions, modules } = readSamples(profile, root);
    if (busyMs === 0) continue;
    const name = file.replace('.cpuprofile', '');
    process.stdout.write(`\n### ${name}: ${(busyMs / count).toFixed(3)} ms a request\n`);
    printTop('functions, by their own time', { list: functions, key: 'selfMs', count });
    printTop('functions, with all that they call', { list: functions, key: 'wholeMs', count });
    printTop('modules, by their own time', { list: modules, key: 'selfMs', count });
  }
}

function printTop(title, { list, key, count }) {
  const top = list.toSorted((one, other) => other[key] - one[key]).slice(0, Number(options.lines));
  const us = (ms) => ((ms * 1000) / count).toFixed(1);
  const rows = top.map((it) => [it.name, us(it.selfMs), us(it.wholeMs)]);
  process.stdout.write(`\n${drawTable([title, 'own us', 'whole us'], rows)}\n`);
}
