/** Time to the first body byte of a streamed answer, and what it is more than to the provider directly. */
import { renumber } from '../lib/bodies.mjs';
import { Connection } from '../lib/connection.mjs';
import { median, percentile } from '../lib/statistics.mjs';

const SIZES = ['2k', '100k', '1m', '4m'];
const REQUESTS = { '2k': 150, '36k': 100, '100k': 60, '1m': 20, '4m': 8 };
const QUICK_REQUESTS = { '2k': 40, '36k': 25, '100k': 15, '1m': 6, '4m': 3 };

/** Most requests of an agent carry a tool's output: nobody asked anything new. */
export const latency = suiteFor('output', 'the newest item is the output of a tool.');

/** And some a new question, for which memory is searched before the request goes on. */
export const ask = suiteFor('question', 'the newest item is a new question.');

function suiteFor(newest, title) {
  return {
    title: `Time to first body byte, ms: ${title}`,
    measure: (bench) => measureLatency(bench, newest),
    columns: ['target', ...SIZES.flatMap((size) => [`${size} p50`, 'added', 'p99', 'CPU ms'])],
    row: (result) =>
      SIZES.flatMap((size) => {
        const { p50, added, p99, cpuMs } = result[size];
        return [p50, added, p99, cpuMs];
      }),
  };
}

/** By target and size: { p50, p99, added, cpuMs }. */
export async function measureLatency(bench, newest, sizes = SIZES) {
  await bench.provider.setMode({ kind: 'sse' });
  const perSize = () => Object.fromEntries(sizes.map((size) => [size, []]));
  const runs = new Map(bench.targets.map(({ name }) => [name, perSize()]));
  for (let round = 0; round < bench.rounds; round += 1) {
    for (const size of sizes) {
      for (const target of bench.inOrder(round)) {
        runs.get(target.name)[size].push(await measureRun(bench, target, { size, newest }));
      }
    }
  }
  const direct = runs.get('direct');
  return Object.fromEntries([...runs].map(([name, bySize]) => [name, summarize(bySize, direct)]));
}

async function measureRun(bench, target, { size, newest }) {
  const count = bench.choose(QUICK_REQUESTS, REQUESTS)[size];
  const connection = new Connection(target);
  const request = bench.requestFor(target, { size, newest });
  const times = [];
  const cpuBefore = bench.cpuMs(target);
  for (let at = 0; at < count; at += 1) {
    const { status, failure, firstByteAt, sentAt } = await connection.request(renumber(request));
    if (status !== 200 || failure !== undefined)
      throw new Error(`${target.name}, ${size}: ${status} ${failure ?? ''}`);
    times.push(firstByteAt - sentAt);
  }
  connection.close();
  return {
    times,
    cpuMs: cpuBefore === undefined ? undefined : (bench.cpuMs(target) - cpuBefore) / count,
  };
}

/** `added` is the median, over the rounds, of the difference to direct in the same round. */
function summarize(bySize, directBySize) {
  const summary = {};
  for (const [size, runs] of Object.entries(bySize)) {
    const added = runs.map(
      ({ times }, round) => median(times) - median(directBySize[size][round].times),
    );
    summary[size] = {
      p50: median(runs.map(({ times }) => median(times))),
      p99: percentile(
        runs.flatMap(({ times }) => times),
        0.99,
      ),
      added: median(added),
      cpuMs: median(runs.map(({ cpuMs }) => cpuMs)),
    };
  }
  return summary;
}
