/** How long after the last byte a receipt can be read. */
import { renumber } from '../../lib/bodies.mjs';
import { now } from '../../lib/clock.mjs';
import { Connection, encodeRequest } from '../../lib/connection.mjs';
import { median, percentile } from '../../lib/statistics.mjs';

const CLIENTS = 4;
const REQUESTS = 60;
const QUICK_REQUESTS = 15;
const GIVEN_UP_MS = 5_000;

export const readable = {
  title: 'A receipt can be read so many ms after the last byte',

  async measure({ bench, service, key }) {
    await bench.provider.setMode({ kind: 'sse' });
    const count = bench.choose(QUICK_REQUESTS, REQUESTS);
    const times = [];
    const client = async () => {
      const connection = new Connection(service);
      const headers = { authorization: `Bearer ${key}` };
      const request = Buffer.from(bench.requestFor(service, { headers }));
      for (let at = 0; at < count; at += 1) {
        const answer = await connection.request(renumber(request));
        if (answer.status !== 200) throw new Error(`the service answered ${answer.status}`);
        times.push(await timeTo(connection, { service, headers, answer }));
      }
      connection.close();
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    return { hosted: { p50: median(times), p99: percentile(times, 0.99), count: times.length } };
  },

  columns: ['target', 'p50', 'p99', 'receipts'],
  row: ({ p50, p99, count }) => [p50, p99, count],
};

async function timeTo(connection, { service, headers, answer }) {
  const path = `/v1/svc/requests/${answer.headers['x-svc-receipt-id']}`;
  const host = `${service.host}:${service.port}`;
  const request = encodeRequest({ host, path, method: 'GET', headers });
  while (now() - answer.endedAt < GIVEN_UP_MS) {
    const { status, endedAt } = await connection.request(request);
    if (status === 200) return endedAt - answer.endedAt;
    if (status !== 404) throw new Error(`a receipt was answered ${status}`);
  }
  return Infinity;
}
