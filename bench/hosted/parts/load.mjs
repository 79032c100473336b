/** Requests a second with 64 at once, 2 kB each: the service counts every limit and signs every receipt. */
import { renumber } from '../../lib/bodies.mjs';
import { now } from '../../lib/clock.mjs';
import { Connection } from '../../lib/connection.mjs';
import { median } from '../../lib/statistics.mjs';

const AT_ONCE = 64;
const MS = 4_000;
const QUICK_MS = 1_500;

export const load = {
  title: `Requests a second with ${AT_ONCE} at once, 2 kB, answers of 1.5 kB`,

  async measure({ bench }) {
    await bench.provider.setMode({ kind: 'json' });
    const runs = new Map(bench.targets.map(({ name }) => [name, []]));
    for (let round = 0; round < Math.min(bench.rounds, 3); round += 1) {
      for (const target of bench.inOrder(round)) {
        runs.get(target.name).push(await measureRun(bench, target));
      }
    }
    return Object.fromEntries([...runs].map(([name, all]) => [name, summarize(all)]));
  },

  columns: ['target', 'requests/s', 'CPU ms a request'],
  row: ({ perSecond, cpuMs }) => [perSecond, cpuMs],
};

function summarize(runs) {
  return {
    perSecond: median(runs.map(({ perSecond }) => perSecond)),
    cpuMs: median(runs.map(({ cpuMs }) => cpuMs)),
  };
}

async function measureRun(bench, target) {
  const until = now() + bench.choose(QUICK_MS, MS);
  const began = now();
  const cpuBefore = bench.cpuMs(target);
  let count = 0;
  const client = async () => {
    const connection = new Connection(target);
    const request = Buffer.from(bench.requestFor(target, { isStream: false }));
    while (now() < until) {
      const { status, failure } = await connection.request(renumber(request));
      if (status !== 200) throw new Error(`${target.name}: ${status} ${failure ?? ''}`);
      count += 1;
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  const seconds = (now() - began) / 1000;
  const cpuMs = cpuBefore === undefined ? undefined : (bench.cpuMs(target) - cpuBefore) / count;
  return { perSecond: count / seconds, cpuMs };
}
