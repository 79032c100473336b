/** A thousand slow streams at once, as of many agents: is one cut, and how late do events come? */
import { sleep, waitUntil } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { residentMbOf } from '../lib/processes.mjs';
import { percentile } from '../lib/statistics.mjs';

const STREAMS = 1_000;
const QUICK_STREAMS = 200;
const EVENTS_A_SECOND = 2;
const ENDLESS = 1e9;
/** Between two requests, so that opening is no load of its own. */
const OPEN_MS = 8;
/** After the last request. */
const HEADS_MS = 60_000;
/** Nothing opens or ends meanwhile. */
const WATCHED_MS = 5_000;

export const crowd = {
  title: `Crowd: ${STREAMS} streams at once, ${EVENTS_A_SECOND} events a second each; delay of an event, ms.`,

  async measure(bench) {
    const results = {};
    for (const target of bench.started()) results[target.name] = await measureCrowd(bench, target);
    return results;
  },

  columns: ['target', 'open at once', 'cut', 'delay p50', 'delay p99', 'resident MB'],
  row: ({ open, cut, p50, p99, mb }) => [open, cut, p50, p99, mb],
};

async function measureCrowd(bench, target) {
  const count = bench.choose(QUICK_STREAMS, STREAMS);
  await bench.provider.setMode({ kind: 'sse', events: ENDLESS, rate: EVENTS_A_SECOND });
  const request = bench.requestFor(target);
  const delays = [];
  let [open, isWatched] = [0, false];
  const onHead = () => {
    open += 1;
  };
  const onData = (bytes, readAt) => {
    if (!isWatched) return;
    for (const [, writtenAt] of bytes.latin1Slice().matchAll(/@(\d+\.\d+)@/g))
      delays.push(readAt - Number(writtenAt));
  };
  const answers = [];
  for (let at = 0; at < count; at += 1) {
    const connection = new Connection(target);
    const answer = connection.request(request, { onHead, onData });
    answers.push(answer.finally(() => connection.close()));
    await sleep(OPEN_MS);
  }
  await waitUntil(() => open === count, HEADS_MS);
  isWatched = true;
  await sleep(WATCHED_MS);
  isWatched = false;
  const mb = residentMbOf(target.process.pid);
  await bench.provider.finish();
  const ended = await Promise.all(answers);
  const cut = ended.filter(({ status, failure }) => status !== 200 || failure !== undefined).length;
  return { open, cut, mb, p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
}
