/** Resident megabytes: idle, with 200 open streams, and what a reader that stalls makes the target hold. */
import { sleep, waitUntil, within } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { residentMbOf } from '../lib/processes.mjs';

const OPEN_STREAMS = 200;
const OPEN_MS = 20_000;
/** After the first request, before the process is called idle. */
const SETTLE_MS = 1500;
const STALLED_EVENTS = 1_000_000;
const QUICK_STALLED_EVENTS = 300_000;
const READ_BEFORE_STALL_BYTES = 1e6;
const STALL_MS = 2000;

export const memory = {
  title:
    'Memory: resident MB on a fresh process; MB that the provider could send to a reader that stalled.',

  async measure(bench) {
    const results = {};
    for (const target of bench.started()) {
      await bench.restart(target);
      const idle = await measureIdle(bench, target);
      const open = await measureOpenStreams(bench, target);
      await bench.restart(target);
      results[target.name] = { idle, ...open, ...(await measureStalledReader(bench, target)) };
    }
    return results;
  },

  columns: ['target', 'idle', '200 streams', 'opened', 'stalled: held', 'stalled: grew', 'whole'],
  row: ({ idle, open200, opened, heldMb, grewMb, isWhole }) => [
    idle,
    open200,
    opened,
    heldMb,
    grewMb,
    isWhole,
  ],
};

async function measureIdle(bench, target) {
  await bench.provider.setMode({ kind: 'json' });
  const connection = new Connection(target);
  await connection.request(bench.requestFor(target, { isStream: false }));
  connection.close();
  await sleep(SETTLE_MS);
  return residentMbOf(target.process.pid);
}

/** Each stream follows a request of 100 kB, as an agent's does. */
async function measureOpenStreams(bench, target) {
  await bench.provider.setMode({ kind: 'sse', events: 1000, rate: 4 });
  const connections = Array.from({ length: OPEN_STREAMS }, () => new Connection(target));
  const request = bench.requestFor(target, { size: '100k' });
  let opened = 0;
  const onHead = () => {
    opened += 1;
  };
  const answers = [];
  for (const connection of connections) {
    answers.push(connection.request(request, { onHead }));
    await sleep(8);
  }
  await waitUntil(() => opened === OPEN_STREAMS, OPEN_MS);
  await sleep(SETTLE_MS);
  const open200 = residentMbOf(target.process.pid);
  for (const connection of connections) connection.close();
  await Promise.all(answers);
  return { opened, open200 };
}

async function measureStalledReader(bench, target) {
  const events = bench.choose(QUICK_STALLED_EVENTS, STALLED_EVENTS);
  await bench.provider.reset();
  await bench.provider.setMode({ kind: 'sse', events, eventsPerWrite: 400 });
  const before = residentMbOf(target.process.pid);
  const connection = new Connection(target);
  const stalled = withResolvers();
  let readBytes = 0;
  const answered = connection.request(bench.requestFor(target), {
    onData: (bytes) => {
      const wasBelow = readBytes < READ_BEFORE_STALL_BYTES;
      readBytes += bytes.length;
      if (!wasBelow || readBytes < READ_BEFORE_STALL_BYTES) return;
      connection.socket.pause();
      stalled.resolve(readBytes);
    },
  });
  const readAtStall = await stalled.promise;
  await sleep(STALL_MS);
  const { sentBytes } = await bench.provider.report();
  const heldMb = (sentBytes - readAtStall) / 2 ** 20;
  const grewMb = residentMbOf(target.process.pid) - before;
  connection.socket.resume();
  const answer = await within(60_000, answered);
  connection.close();
  return { heldMb, grewMb, isWhole: answer !== undefined && answer.failure === undefined };
}

function withResolvers() {
  const parts = {};
  parts.promise = new Promise((resolve) => {
    parts.resolve = resolve;
  });
  return parts;
}
