/**
 * What a request costs as its conversation grows: only the newest round is new, so it should cost the
 * same after 10 rounds as after 2,000, but for the bytes that any relay moves.
 */
import { sleep } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { median } from '../lib/statistics.mjs';

const ROUNDS = [10, 100, 500, 1000, 2000];
const QUICK_ROUNDS = [10, 500];
const REQUESTS = 6;
/** What a proxy does after an answer has time to end. */
const PAUSE_MS = 60;

export const curve = {
  title:
    'A tool loop after so many rounds of 1.5 kB: ms added to the first byte, and CPU ms, of the next request.',

  async measure(bench) {
    await bench.provider.setMode({ kind: 'sse' });
    const counts = bench.choose(QUICK_ROUNDS, ROUNDS);
    const runs = new Map(bench.targets.map(({ name }) => [name, counts.map(() => [])]));
    for (let round = 0; round < Math.min(3, bench.rounds); round += 1) {
      for (const [place, count] of counts.entries()) {
        for (const target of bench.inOrder(round)) {
          const run = await measureLoop(bench, target, { count, seed: 300 + round });
          runs.get(target.name)[place].push(run);
        }
      }
    }
    const direct = runs.get('direct');
    return Object.fromEntries(
      [...runs].map(([name, places]) => [name, summarize(counts, { places, direct })]),
    );
  },

  columns: ['target', ...ROUNDS.flatMap((count) => [`${count} rounds`, 'first sight', 'CPU'])],
  row: (result) =>
    ROUNDS.flatMap((count) => {
      const { added, addedFirst, cpuMs } = result[count] ?? {};
      return [added, addedFirst, cpuMs];
    }),
};

async function measureLoop(bench, target, { count, seed }) {
  const connection = new Connection(target);
  const times = [];
  let cpuBefore;
  for (let more = 0; more <= REQUESTS; more += 1) {
    const request = bench.requestFor(target, { seed, moreRounds: count + more });
    await sleep(PAUSE_MS);
    if (more === 1) cpuBefore = bench.cpuMs(target);
    const { status, failure, firstByteAt, sentAt } = await connection.request(request);
    if (status !== 200) throw new Error(`${target.name}, ${count}: ${status} ${failure ?? ''}`);
    times.push(firstByteAt - sentAt);
  }
  await sleep(PAUSE_MS);
  connection.close();
  const [first, ...next] = times;
  const cpuMs = cpuBefore === undefined ? Number.NaN : (bench.cpuMs(target) - cpuBefore) / REQUESTS;
  return { first, next: median(next), cpuMs };
}

function summarize(counts, { places, direct }) {
  const summary = counts.map((count, place) => {
    const runs = places[place];
    const added = (key) => median(runs.map((run, at) => run[key] - direct[place][at][key]));
    const cpuMs = Math.min(...runs.map((run) => run.cpuMs));
    return [count, { added: added('next'), addedFirst: added('first'), cpuMs }];
  });
  return Object.fromEntries(summary);
}
