/** A thousand answers under way at once: is one of them cut, and what do they take of memory? */
import { sleep, waitUntil } from '../../lib/clock.mjs';
import { Connection } from '../../lib/connection.mjs';
import { residentMbOf } from '../../lib/processes.mjs';

const OPEN = 1_000;
const QUICK_OPEN = 200;
const EVENTS_A_SECOND = 2;
const ENDLESS = 1e9;
/** After the last request. */
const HEADS_MS = 60_000;
/** Between two of them, so that opening is no load of its own. */
const OPEN_MS = 8;

export const streams = {
  title: 'Open streams, each after a request of 2 kB',

  async measure({ bench, service, key }) {
    const count = bench.choose(QUICK_OPEN, OPEN);
    service.forget();
    await bench.restart(service);
    await bench.provider.setMode({ kind: 'sse', events: ENDLESS, rate: EVENTS_A_SECOND });
    const request = bench.requestFor(service, { headers: { authorization: `Bearer ${key}` } });
    let [opened, most] = [0, 0];
    const answers = [];
    for (let at = 0; at < count; at += 1) {
      const connection = new Connection(service);
      const onHead = () => {
        opened += 1;
      };
      const answer = connection.request(request, { onHead }).then((ended) => {
        most = Math.max(most, residentMbOf(service.process.pid));
        opened -= 1;
        connection.close();
        return ended;
      });
      answers.push(answer);
      await sleep(OPEN_MS);
    }
    await waitUntil(() => opened === count, HEADS_MS);
    const atOnce = opened;
    const mb = residentMbOf(service.process.pid);
    await bench.provider.finish();
    const ended = await Promise.all(answers);
    const cut = ended.filter(({ status, failure }) => status !== 200 || failure !== undefined);
    return { hosted: { count, atOnce, cut: cut.length, mb: Math.max(mb, most) } };
  },

  columns: ['target', 'streams', 'open at once', 'cut', 'most MB'],
  row: ({ count, atOnce, cut, mb }) => [count, atOnce, cut, mb],
};
