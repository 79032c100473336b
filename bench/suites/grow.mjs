/** What an agent does: each request is the last one and a tool call more, and none is sent twice. */
import { sleep } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { median, percentile } from '../lib/statistics.mjs';

const SIZES = ['100k', '1m'];
const REQUESTS = 8;
/** An agent thinks between requests; what a proxy does after an answer has time to end. */
const PAUSE_MS = 30;

export const grow = {
  title:
    'Growing conversation: time to first body byte, ms. `first`: never seen before, `next`: grown by a tool call.',

  async measure(bench) {
    await bench.provider.setMode({ kind: 'sse' });
    const times = new Map(
      bench.targets.map(({ name }) => [name, Object.fromEntries(SIZES.map((size) => [size, []]))]),
    );
    for (let round = 0; round < bench.choose(1, bench.rounds); round += 1) {
      for (const size of SIZES) {
        for (const target of bench.inOrder(round)) {
          const conversation = await measureConversation(bench, target, {
            size,
            seed: 100 + round,
          });
          times.get(target.name)[size].push(conversation);
        }
      }
    }
    return Object.fromEntries(
      [...times].map(([name, bySize]) => [name, summarize(bySize, times.get('direct'))]),
    );
  },

  columns: [
    'target',
    ...SIZES.flatMap((size) => [`${size} first`, 'added', 'next', 'added', 'p99']),
  ],
  row: (result) =>
    SIZES.flatMap((size) => {
      const { first, addedFirst, next, addedNext, next99 } = result[size];
      return [first, addedFirst, next, addedNext, next99];
    }),
};

async function measureConversation(bench, target, { size, seed }) {
  const connection = new Connection(target);
  const times = [];
  for (let moreRounds = 0; moreRounds < REQUESTS; moreRounds += 1) {
    const request = bench.requestFor(target, { size, seed, moreRounds });
    await sleep(PAUSE_MS);
    const { firstByteAt, sentAt } = await connection.request(request);
    times.push(firstByteAt - sentAt);
  }
  connection.close();
  return { first: times[0], next: times.slice(1) };
}

function summarize(bySize, directBySize) {
  const summary = {};
  for (const [size, conversations] of Object.entries(bySize)) {
    const direct = directBySize[size];
    summary[size] = {
      first: median(conversations.map((it) => it.first)),
      next: median(conversations.flatMap((it) => it.next)),
      next99: percentile(
        conversations.flatMap((it) => it.next),
        0.99,
      ),
      addedFirst: median(conversations.map((it, round) => it.first - direct[round].first)),
      addedNext: median(
        conversations.map((it, round) => median(it.next) - median(direct[round].next)),
      ),
    };
  }
  return summary;
}
