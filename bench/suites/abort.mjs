/** Who goes away is noticed: the client in mid-stream, before the answer and in mid-upload, the provider in mid-stream. */
import { now, sleep, within } from '../lib/clock.mjs';
import { Connection } from '../lib/connection.mjs';
import { median } from '../lib/statistics.mjs';

const TRIES = 8;
const QUICK_TRIES = 3;
/** Watched for so long; a target that takes longer never notices. */
const WATCH_MS = 3000;

export const abort = {
  title: 'Abort: client gone until the provider is let go, ms; what each side sees.',

  async measure(bench) {
    const results = {};
    for (const target of bench.targets) {
      const tries = Array.from({ length: bench.choose(QUICK_TRIES, TRIES) });
      const midStream = [];
      const beforeAnswer = [];
      for (const _ of tries) {
        midStream.push(await leaveMidStream(bench, target));
        beforeAnswer.push(await leaveBeforeAnswer(bench, target));
      }
      results[target.name] = {
        midStreamMs: median(midStream),
        midStreamMaxMs: Math.max(...midStream),
        beforeAnswerMs: median(beforeAnswer),
        upload: await leaveMidUpload(bench, target),
        providerDies: await watchProviderDie(bench, target),
        overloaded: await readOverloaded(bench, target),
      };
    }
    return results;
  },

  columns: [
    'target',
    'mid-stream',
    'max',
    'before answer',
    'half an upload',
    'provider dies',
    '529 seen as',
  ],
  row: ({ midStreamMs, midStreamMaxMs, beforeAnswerMs, upload, providerDies, overloaded }) => [
    midStreamMs,
    midStreamMaxMs,
    beforeAnswerMs,
    upload,
    providerDies,
    String(overloaded),
  ],
};

async function leaveMidStream(bench, target) {
  await bench.provider.reset();
  await bench.provider.setMode({ kind: 'sse', events: 5000, rate: 100 });
  const connection = new Connection(target);
  let leftAt = 0;
  const answered = connection.request(bench.requestFor(target), {
    onData: (_bytes, readAt, { bytes }) => {
      if (bytes < 2000 || leftAt > 0) return;
      leftAt = readAt;
      connection.socket.destroy();
    },
  });
  await within(WATCH_MS, answered);
  return sinceAborted(bench, leftAt);
}

async function leaveBeforeAnswer(bench, target) {
  await bench.provider.reset();
  await bench.provider.setMode({ kind: 'silent' });
  const connection = new Connection(target);
  const answered = connection.request(bench.requestFor(target));
  await bench.provider.waitForRecord(() => true, WATCH_MS);
  const leftAt = now();
  connection.close();
  await answered;
  return sinceAborted(bench, leftAt);
}

async function sinceAborted(bench, leftAt) {
  const record = await bench.provider.waitForRecord((it) => it.abortedAt !== undefined, WATCH_MS);
  return record === undefined ? Infinity : record.abortedAt - leftAt;
}

async function leaveMidUpload(bench, target) {
  await bench.provider.reset();
  await bench.provider.setMode({ kind: 'json' });
  const connection = new Connection(target);
  await connection.connect();
  const request = bench.requestFor(target, { size: '1m', isStream: false });
  connection.socket.write(request.subarray(0, request.length / 2));
  await sleep(150);
  connection.close();
  await sleep(400);
  const { records, requests } = await bench.provider.report();
  if (requests > 0) return 'SENT WHOLE';
  return records.some((it) => it.isPartial) ? 'aborted' : 'not sent';
}

/** A half answer must not look like a whole one. */
async function watchProviderDie(bench, target) {
  await bench.provider.setMode({ kind: 'sse', events: 1000, rate: 100, diesAfter: 20 });
  const connection = new Connection(target);
  const answer = await within(WATCH_MS, connection.request(bench.requestFor(target)));
  connection.close();
  if (answer === undefined) return 'HANGS';
  return answer.failure === undefined ? 'CLEAN END' : 'broken';
}

async function readOverloaded(bench, target) {
  await bench.provider.setMode({ kind: 'json', status: 529, jsonBytes: 500 });
  const connection = new Connection(target);
  const answer = await within(WATCH_MS, connection.request(bench.requestFor(target)));
  connection.close();
  return answer?.status ?? 'nothing';
}
