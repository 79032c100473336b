/**
 * Is an event held back? Step by step: the provider sends an event only after the one before was read
 * behind the target, so a target that waits for more never gets more. And paced: how late events are.
 */
import { sleep, within } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { percentile } from '../lib/statistics.mjs';

const STEPS = 100;
/** An event that took so long was held back: between processes it takes less than a millisecond. */
const HELD_BACK_MS = 1000;

const STREAMS = 4;
const PACED_EVENTS = 100;
const EVENTS_PER_SECOND = 50;

export const pace = {
  title: `Pace: events held back of ${STEPS} sent one by one; delay of events at ${EVENTS_PER_SECOND} a second, ms.`,

  async measure(bench) {
    const results = Object.fromEntries(
      bench.targets.map(({ name }) => [name, { heldBack: 0, lost: 0, delays: [] }]),
    );
    for (let round = 0; round < bench.choose(1, 2); round += 1) {
      for (const target of bench.inOrder(round)) {
        const result = results[target.name];
        result.heldBack += await countHeldBack(bench, target);
        const delays = await measureDelays(bench, target);
        result.lost += STREAMS * PACED_EVENTS - delays.length;
        result.delays.push(...delays);
      }
    }
    for (const result of Object.values(results)) {
      Object.assign(result, {
        p50: percentile(result.delays, 0.5),
        p99: percentile(result.delays, 0.99),
      });
      delete result.delays;
    }
    return results;
  },

  columns: ['target', 'held back', 'lost', 'delay p50', 'delay p99'],
  row: ({ heldBack, lost, p50, p99 }) => [heldBack, lost, p50, p99],
};

async function countHeldBack(bench, target) {
  await bench.provider.setMode({ kind: 'sse', isStepped: true, events: STEPS });
  const connection = new Connection(target);
  let text = '';
  let onText = () => {};
  const answered = connection.request(bench.requestFor(target), {
    onData: (bytes) => {
      text += bytes.latin1Slice();
      onText();
    },
  });
  const waitFor = (mark) =>
    new Promise((resolve) => {
      onText = () => text.includes(mark) && resolve(true);
      onText();
    });
  let heldBack = 0;
  // The first event of every dialect comes before the first step.
  if (!(await within(HELD_BACK_MS, waitFor('message_start')))) heldBack += 1;
  for (let step = 0; step < STEPS; step += 1) {
    await bench.provider.step();
    if (!(await within(HELD_BACK_MS, waitFor(`@${step}@`)))) heldBack += 1;
  }
  await bench.provider.step();
  if (!(await within(HELD_BACK_MS, answered))) heldBack += 1;
  connection.close();
  return heldBack;
}

async function measureDelays(bench, target) {
  await bench.provider.setMode({ kind: 'sse', events: PACED_EVENTS, rate: EVENTS_PER_SECOND });
  const { delays, ended } = readPacedStreams(bench, target, STREAMS);
  await ended;
  return delays;
}

/** Opens streams whose events carry the time at which they were written. */
export function readPacedStreams(bench, target, streams) {
  const delays = [];
  const read = async (at) => {
    const connection = new Connection(target);
    await connection.connect();
    // Not all at the same moment: they would wait for each other in the driver.
    await sleep(at * 5);
    await connection.request(bench.requestFor(target), {
      onData: (bytes, readAt) => {
        for (const [, writtenAt] of bytes.latin1Slice().matchAll(/@(\d+\.\d+)@/g))
          delays.push(readAt - Number(writtenAt));
      },
    });
    connection.close();
  };
  const ended = Promise.all(Array.from({ length: streams }, (_, at) => read(at)));
  return { delays, ended };
}
