/** From exec to the first request served, and the first requests of a process: a person's proxy is cold. */
import { renumber } from '../lib/bodies.mjs';
import { now, sleep } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { stopProcess } from '../lib/processes.mjs';
import { median } from '../lib/statistics.mjs';

const STARTS = 10;
const QUICK_STARTS = 3;
const SERVES_MS = 20_000;
const FIRST_REQUESTS = 10;

export const startup = {
  title: 'Cold start: exec to first request served, ms; the first requests of 100 kB after it, ms.',

  async measure(bench) {
    const targets = bench.started();
    for (const target of targets) await bench.stop(target);
    const runs = new Map(targets.map(({ name }) => [name, []]));
    for (let round = 0; round < bench.choose(QUICK_STARTS, STARTS); round += 1) {
      for (const target of bench.inOrder(round).filter((it) => runs.has(it.name))) {
        runs.get(target.name).push(await measureStart(bench, target));
      }
    }
    for (const target of targets) await bench.start(target);
    return Object.fromEntries(
      [...runs].map(([name, starts]) => [
        name,
        Object.fromEntries(
          ['servedMs', 'firstMs', 'nextMs'].map((key) => [
            key,
            median(starts.map((it) => it[key])),
          ]),
        ),
      ]),
    );
  },

  columns: ['target', 'first served', '1st 100 kB', '2nd to 10th'],
  row: ({ servedMs, firstMs, nextMs }) => [servedMs, firstMs, nextMs],
};

async function measureStart(bench, target) {
  await bench.provider.setMode({ kind: 'sse' });
  const small = bench.requestFor(target);
  const started = bench.spawn(target);
  const until = started.startedAt + SERVES_MS;
  let servedAt;
  while (servedAt === undefined && now() < until && !started.isDead) {
    const connection = new Connection(target);
    const { status, endedAt, failure } = await connection.request(small);
    connection.close();
    if (status === 200 && failure === undefined) servedAt = endedAt;
    else await sleep(1);
  }
  if (servedAt === undefined) throw new Error(`${target.name} did not serve`);
  const times = await measureFirstRequests(bench, target);
  await stopProcess(started);
  return {
    servedMs: servedAt - started.startedAt,
    firstMs: times[0],
    nextMs: median(times.slice(1)),
  };
}

async function measureFirstRequests(bench, target) {
  const connection = new Connection(target);
  const request = bench.requestFor(target, { size: '100k' });
  const times = [];
  for (let at = 0; at < FIRST_REQUESTS; at += 1) {
    const { firstByteAt, sentAt } = await connection.request(renumber(request));
    times.push(firstByteAt - sentAt);
  }
  connection.close();
  return times;
}
