/** `npm run bench:hosted`: the service's provider proxy beside the local proxy and the bare relay. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Bench } from '../lib/bench.mjs';
import { findPeers } from '../lib/peers.mjs';
import { findFreePort, pinDriver, raisePriority } from '../lib/processes.mjs';
import { ProviderProcess } from '../lib/provider-process.mjs';
import { measureAll, report } from '../lib/results.mjs';
import { drawTable } from '../lib/statistics.mjs';
import { bareTarget, directTarget, svcTarget } from '../lib/targets.mjs';
import { judge } from './bars.mjs';
import { makeCertificate } from './certificate.mjs';
import { ask, latency } from './parts/latency.mjs';
import { list } from './parts/list.mjs';
import { load } from './parts/load.mjs';
import { readable } from './parts/readable.mjs';
import { receipt } from './parts/receipt.mjs';
import { streams } from './parts/streams.mjs';
import { tenants } from './parts/tenants.mjs';
import { HostedService, modeOf } from './service.mjs';

const ROOT = join(import.meta.dirname, '..', '..');
/** The last ones fill the store: what comes before them is measured on a small one. */
const PARTS = { latency, ask, load, receipt, readable, streams, tenants, list };

const USAGE = `npm run bench:hosted -- [options]
  --part a,b      only these of ${Object.keys(PARTS).join(', ')}
  --quick         about a fifth of the work, 1,000 tenants and 100,000 receipts
  --rounds N      5 unless told
  --tenants N     10,000 unless told; --active N of them are used: 1,000
  --passages N    in the table, with --engine; a third of them in the space asked
  --receipts N    1,000,000 unless told, in the list
  --peers FOLDER  where Portkey is installed, see README.md; .bench/peers unless told
  --bin FILE      start this program in place of bin/svc.js; --service FILE in place of svc-service
  --engine postgres   PostgreSQL beside SQLite: recall, capture and size of the stores, a service on each
  --growth A,B    with --engine: recall alone, at so many passages, spread over --tenants N (1)
  --first         as root: before everything else that the machine does
  --json FILE     all results
  --gate          exit 1 when a bar is missed
`;

const { values: given } = parseArgs({
  options: {
    part: { type: 'string', default: Object.keys(PARTS).join(',') },
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    tenants: { type: 'string' },
    active: { type: 'string' },
    receipts: { type: 'string' },
    peers: { type: 'string', default: join(ROOT, '.bench', 'peers') },
    bin: { type: 'string', default: join(ROOT, 'bin', 'svc.js') },
    service: { type: 'string', default: join(ROOT, 'service', 'bin', 'svc-service.js') },
    engine: { type: 'string' },
    passages: { type: 'string' },
    growth: { type: 'string' },
    first: { type: 'boolean', default: false },
    json: { type: 'string' },
    gate: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const sizes = given.quick
  ? { rounds: '2', tenants: '1000', active: '200', receipts: '100000' }
  : { rounds: '5', tenants: '10000', active: '1000', receipts: '1000000' };
const options = { ...(given.engine === undefined ? sizes : {}), ...given };

if (options.help) process.stdout.write(USAGE);
else if (options.engine !== undefined) process.exitCode = await runEngine();
else process.exitCode = await run();

/** Both engines: the stores alone, then a service on each. */
async function runEngine() {
  if (options.engine !== 'postgres') {
    process.stderr.write(`Unknown engine: ${options.engine}\n${USAGE}`);
    return 2;
  }
  const { measureEngine, measureGrowth } = await import('./engine/run.mjs');
  if (options.growth !== undefined) {
    const growth = options.growth.split(',').map(Number);
    const rows = await measureGrowth({ sizes: growth, tenants: Number(options.tenants ?? '1') });
    process.stdout.write(`${drawTable(Object.keys(rows[0] ?? {}), rows.map(Object.values))}\n`);
    return 0;
  }
  const table = Number(options.passages ?? '0');
  const own = table === 0 ? {} : { table, space: Math.ceil(table / 3) };
  const results = await measureEngine({ isQuick: options.quick, own, bin: options.service });
  process.stdout.write(`${JSON.stringify(results, undefined, 2)}\n`);
  const rows = results.bars.map((it) => [it.what, it.value, it.bar, it.isMet ? 'met' : 'MISSED']);
  process.stdout.write(`\n${drawTable(['bar', 'value', 'at most', 'verdict'], rows)}\n`);
  if (options.json !== undefined) writeFileSync(options.json, JSON.stringify(results, null, 2));
  return options.gate && results.bars.some(({ isMet }) => !isMet) ? 1 : 0;
}

/** The exit code: 0, 1 for a missed bar with --gate or a run that failed, 2 for wrong usage. */
async function run() {
  const chosen = options.part.split(',');
  const unknown = chosen.filter((name) => PARTS[name] === undefined);
  if (unknown.length > 0) {
    process.stderr.write(`Unknown part: ${unknown.join(', ')}\n${USAGE}`);
    return 2;
  }
  pinDriver();
  if (options.first) raisePriority();
  const folder = join(ROOT, '.bench', `hosted-${process.pid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const tls = { port: await findFreePort(), ...makeCertificate(folder) };
  const provider = new ProviderProcess(await findFreePort(), tls);
  const service = new HostedService({
    port: await findFreePort(),
    folder,
    bin: options.service,
    tls: { port: tls.port, ca: tls.certificate },
  });
  const others = await otherTargets({ provider, tls, folder });
  const bench = new Bench({
    provider,
    targets: [...others, service],
    folder,
    isQuick: options.quick,
    rounds: Number(options.rounds),
  });
  process.once('SIGINT', () => void cleanUp(bench, service).then(() => process.exit(130)));
  try {
    await provider.start(folder);
    const key = await begin(bench, service);
    const asked = Object.entries(PARTS).filter(([name]) => chosen.includes(name));
    const context = { bench, service, key, folder, options };
    const parts = await measureAll(Object.fromEntries(asked), context);
    const results = { rounds: bench.rounds, parts };
    const code = report(judge(parts), { names: ['service', 'beside'], results, options });
    await cleanUp(bench, service);
    // Logs and stores stay only where something went wrong.
    rmSync(folder, { recursive: true, force: true });
    return code;
  } catch (error) {
    process.stderr.write(`${error.stack}\n`);
    return 1;
  } finally {
    await cleanUp(bench, service);
  }
}

/** All of them reach the provider by TLS, as the service must. */
async function otherTargets({ provider, tls, folder }) {
  const providerUrl = `https://127.0.0.1:${tls.port}`;
  const place = async () => ({ port: await findFreePort(), providerUrl, folder });
  const targets = [
    directTarget(provider.address),
    await bareTarget(await place()),
    svcTarget({ ...(await place()), bin: options.bin }),
  ];
  const peers = existsSync(options.peers) ? findPeers(resolve(options.peers)) : [];
  for (const makePeer of peers) {
    const peer = makePeer(await place());
    if (peer.name === 'portkey') targets.push(peer);
  }
  if (!targets.some(({ name }) => name === 'portkey')) {
    process.stdout.write(
      `SKIPPED: Portkey is not installed in ${options.peers}, see bench/README.md\n`,
    );
  }
  for (const target of targets) {
    if (target.env !== undefined) target.env.NODE_EXTRA_CA_CERTS = tls.certificate;
  }
  return targets;
}

/** Starts all targets. The service is measured in two modes. Gives the key of its first tenant. */
async function begin(bench, service) {
  service.init();
  for (const target of bench.started()) {
    process.stderr.write(`# start ${target.name}\n`);
    const isUp = await bench.start(target);
    if (target === service) continue;
    const failure = isUp ? await bench.warmUp(target) : `${target.name} did not start`;
    if (failure === undefined) continue;
    if (!target.isPeer) throw new Error(failure);
    process.stdout.write(`SKIPPED: ${failure}\n`);
    await bench.drop(target);
  }
  const key = await service.furnish();
  service.headers = { authorization: `Bearer ${key}` };
  const off = modeOf(service, { name: 'hosted, memory off', key, mode: 'off' });
  bench.targets.splice(bench.targets.indexOf(service), 0, off);
  const failure = (await bench.warmUp(off)) ?? (await bench.warmUp(service));
  if (failure !== undefined) throw new Error(failure);
  return key;
}

async function cleanUp(bench, service) {
  service.forget();
  for (const target of bench.started()) await bench.stop(target);
  await bench.provider.stop();
}
