/** A service on SQLite and one on PostgreSQL and Redis, beside the bare relay: requests as clients send them. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Bench } from '../../lib/bench.mjs';
import { sleep } from '../../lib/clock.mjs';
import { cpuMsOf, findFreePort, pinDriver } from '../../lib/processes.mjs';
import { ProviderProcess } from '../../lib/provider-process.mjs';
import { bareTarget, directTarget } from '../../lib/targets.mjs';
import { measureLatency } from '../../suites/latency.mjs';
import { makeCertificate } from '../certificate.mjs';
import { HostedService } from '../service.mjs';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const ROUNDS = 5;
const QUICK_ROUNDS = 2;
/** Receipts and captures are stored a moment after the answer. */
const STORED_MS = 3000;
/** Of 100 requests each. A service that many use has compiled its code long before. */
const WARM_ROUNDS = 30;
/** Redis wakes up ten times a second, whatever is asked. */
const IDLE_MS = 5000;

/** Time to first byte at 100 kB, and CPU of a request of 36 kB by process. */
export async function measureServices({ isQuick, bin, startServers }) {
  pinDriver();
  const folder = join(ROOT, '.bench', `engines-${process.pid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const tls = { port: await findFreePort(), ...makeCertificate(folder) };
  const provider = new ProviderProcess(await findFreePort(), tls);
  const servers = await startServers();
  const place = async (more) => ({
    port: await findFreePort(),
    folder,
    bin,
    tls: { port: tls.port, ca: tls.certificate },
    ...more,
  });
  const bare = await bareTarget({
    port: await findFreePort(),
    providerUrl: `https://127.0.0.1:${tls.port}`,
    folder,
  });
  bare.env.NODE_EXTRA_CA_CERTS = tls.certificate;
  const services = [
    new HostedService(await place({ name: 'sqlite' })),
    new HostedService(await place({ name: 'postgres', servers })),
  ];
  const targets = [directTarget(provider.address), bare, ...services];
  const rounds = isQuick ? QUICK_ROUNDS : ROUNDS;
  const bench = new Bench({ provider, targets, folder, isQuick, rounds });
  try {
    await provider.start(folder);
    for (const service of services) service.init();
    for (const target of bench.started()) {
      process.stderr.write(`# start ${target.name}\n`);
      if (!(await bench.start(target))) throw new Error(`${target.name} did not start`);
    }
    for (const service of services) {
      service.headers = { authorization: `Bearer ${await service.furnish()}` };
    }
    for (const target of [bare, ...services]) {
      const failure = await bench.warmUp(target);
      if (failure !== undefined) throw new Error(failure);
    }
    const toolLoop = await measureLatency(bench, 'output', ['100k']);
    const question = await measureLatency(bench, 'question', ['100k']);
    const cpu = await cpuByProcess(bench, { service: services[1], servers });
    return { toolLoop, question, cpu };
  } finally {
    for (const service of services) service.forget();
    for (const target of bench.started()) await bench.stop(target);
    await provider.stop();
    await servers.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function cpuByProcess(bench, { service, servers }) {
  const others = bench.targets;
  const used = () => ({
    node: cpuMsOf(service.process.pid),
    postgres: servers.postgresCpuMs(),
    redis: servers.redisCpuMs(),
  });
  const benchOf = (rounds) => {
    const { provider, isQuick } = bench;
    return new Bench({ provider, targets: [others[0], service], rounds, isQuick, folder: '.' });
  };
  await measureLatency(benchOf(bench.choose(1, WARM_ROUNDS)), 'output', ['36k']);
  await sleep(STORED_MS);
  const idleBefore = servers.redisCpuMs();
  await sleep(IDLE_MS);
  const idle = (servers.redisCpuMs() - idleBefore) / IDLE_MS;
  const before = used();
  const began = performance.now();
  await measureLatency(benchOf(bench.rounds), 'output', ['36k']);
  await sleep(STORED_MS);
  const after = used();
  const requests = bench.rounds * bench.choose(25, 100);
  const each = (ms) => Math.round((ms / requests) * 1000) / 1000;
  return {
    ...Object.fromEntries(
      Object.entries(after).map(([name, ms]) => [name, each(ms - before[name])]),
    ),
    // Part of Redis's time, which it takes without any request.
    redisIdle: each(idle * (performance.now() - began)),
  };
}
