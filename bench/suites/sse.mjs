/** What a streamed event costs the target: CPU time, and events a second. */
import { now } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';

const CASES = {
  single: { title: '1 stream', streams: 1, events: 100_000, eventsPerWrite: 1 },
  many: { title: '64 streams', streams: 64, events: 2500, eventsPerWrite: 1 },
  bulk: { title: '64 KiB writes', streams: 1, events: 1_500_000, eventsPerWrite: 400 },
};
const QUICK_SHARE = 0.2;
/** The best of a few is what the program needs; the rest is what else the machine did. */
const ROUNDS_MAX = 3;

export const sse = {
  title: 'Streams: CPU µs an event (lowest of the rounds) and events a second (highest).',

  async measure(bench) {
    const results = Object.fromEntries(bench.targets.map(({ name }) => [name, {}]));
    for (let round = 0; round < Math.min(bench.rounds, ROUNDS_MAX); round += 1) {
      for (const [name, { streams, events, eventsPerWrite }] of Object.entries(CASES)) {
        const count = Math.round(events * bench.choose(QUICK_SHARE, 1));
        await bench.provider.setMode({ kind: 'sse', events: count, eventsPerWrite });
        for (const target of bench.inOrder(round)) {
          const run = await measureStreams(bench, target, { streams, events: count });
          const best = results[target.name][name];
          results[target.name][name] = {
            cpuUs: Math.min(run.cpuUs, best?.cpuUs ?? Infinity),
            perSecond: Math.max(run.perSecond, best?.perSecond ?? 0),
          };
        }
      }
    }
    return results;
  },

  columns: [
    'target',
    ...Object.values(CASES).flatMap(({ title }) => [`${title}: CPU µs`, 'events/s']),
  ],
  row: (result) =>
    Object.keys(CASES).flatMap((name) => [result[name].cpuUs, result[name].perSecond]),
};

async function measureStreams(bench, target, { streams, events }) {
  const connections = Array.from({ length: streams }, () => new Connection(target));
  await Promise.all(connections.map((it) => it.connect()));
  const request = bench.requestFor(target);
  const cpuBefore = bench.cpuMs(target);
  const startedAt = now();
  const answers = await Promise.all(connections.map((it) => it.request(request)));
  const wallMs = now() - startedAt;
  const cpuMs = cpuBefore === undefined ? Number.NaN : bench.cpuMs(target) - cpuBefore;
  for (const connection of connections) connection.close();
  const failed = answers.find((it) => it.failure !== undefined);
  if (failed !== undefined) throw new Error(`${target.name}: a stream is ${failed.failure}`);
  return {
    cpuUs: (cpuMs * 1000) / (events * streams),
    perSecond: (events * streams * 1000) / wallMs,
  };
}
