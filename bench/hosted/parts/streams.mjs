/** A thousand answers under way at once: is one of them cut, and what do they take of memory? */
import { sleep } from '../../lib/clock.mjs';
import { Connection } from '../../lib/connection.mjs';
import { residentMbOf } from '../../lib/processes.mjs';

const OPEN = 1_000;
const QUICK_OPEN = 200;
const EVENTS_A_SECOND = 2;
/** Between two of them, so that opening is no load of its own. */
const OPEN_MS = 8;

export const streams = {
  title: 'Open streams, each after a request of 2 kB',

  async measure({ bench, service, key }) {
    const count = bench.choose(QUICK_OPEN, OPEN);
    // They are still open when the last one has begun.
    const events = Math.ceil(EVENTS_A_SECOND * ((count * OPEN_MS * 2) / 1000 + 10));
    service.forget();
    await bench.restart(service);
    await bench.provider.setMode({ kind: 'sse', events, rate: EVENTS_A_SECOND });
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
    await sleep(1_000);
    const atOnce = opened;
    const mb = residentMbOf(service.process.pid);
    const ended = await Promise.all(answers);
    const cut = ended.filter(({ status, failure }) => status !== 200 || failure !== undefined);
    return { hosted: { count, atOnce, cut: cut.length, mb: Math.max(mb, most) } };
  },

  columns: ['target', 'streams', 'open at once', 'cut', 'most MB'],
  row: ({ count, atOnce, cut, mb }) => [count, atOnce, cut, mb],
};
