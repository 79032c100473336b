/** Do large requests of one client hold up the streams of another? */
import { renumber } from '../lib/bodies.mjs';
import { sleep, within } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { percentile } from '../lib/statistics.mjs';
import { readPacedStreams } from './pace.mjs';

const STREAMS = 4;
const EVENTS_PER_SECOND = 50;
/** Between two large requests: about eight a second. */
const PAUSE_MS = 100;

export const stall = {
  title: 'Stall: delay of 4 paced streams, ms, alone and while another client sends 1 MB requests.',

  async measure(bench) {
    const results = Object.fromEntries(
      bench.targets.map(({ name }) => [name, { alone: [], busy: [] }]),
    );
    for (let round = 0; round < bench.choose(1, 2); round += 1) {
      for (const target of bench.inOrder(round)) {
        results[target.name].alone.push(...(await measureDelays(bench, target, false)));
        results[target.name].busy.push(...(await measureDelays(bench, target, true)));
      }
    }
    const summarize = ({ alone, busy }) => ({
      alone99: percentile(alone, 0.99),
      busy50: percentile(busy, 0.5),
      busy99: percentile(busy, 0.99),
    });
    return Object.fromEntries(
      Object.entries(results).map(([name, delays]) => [name, summarize(delays)]),
    );
  },

  columns: ['target', 'alone p99', 'busy p50', 'busy p99'],
  row: ({ alone99, busy50, busy99 }) => [alone99, busy50, busy99],
};

async function measureDelays(bench, target, isBusy) {
  await bench.provider.setMode({
    kind: 'sse',
    events: bench.choose(60, 150),
    rate: EVENTS_PER_SECOND,
  });
  const { delays, ended } = readPacedStreams(bench, target, STREAMS);
  if (isBusy) {
    // The streams took their mode when they began; from here on the provider answers at once.
    await sleep(200);
    await bench.provider.setMode({ kind: 'json' });
    await Promise.all([ended, sendLarge(bench, target, ended)]);
  }
  await ended;
  return delays;
}

/** Large requests, one after the other, until the streams have ended. */
async function sendLarge(bench, target, ended) {
  const connection = new Connection(target);
  const request = bench.requestFor(target, { size: '1m', isStream: false });
  while ((await within(PAUSE_MS, ended)) === undefined) await connection.request(renumber(request));
  connection.close();
}
