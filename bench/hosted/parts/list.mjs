/** A page of a long list of receipts: the first one, and one far behind. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Connection, encodeRequest } from '../../lib/connection.mjs';
import { median, percentile } from '../../lib/statistics.mjs';
import { idAt } from '../receipt-ids.mjs';

const PAGE = 20;
const FAR_PAGE = 10_000;
const CALLS = 400;
const QUICK_CALLS = 100;
const WARM_CALLS = 20;
const FILLER = fileURLToPath(new URL('../fill-receipts.mjs', import.meta.url));

export const list = {
  title: 'Ms for a page of 20 of a long list of receipts',

  async measure({ bench, service, key, options }) {
    const count = Number(options.receipts);
    service.forget();
    await bench.stop(service);
    addReceipts(service.database, count);
    if (!(await bench.start(service))) throw new Error('the service did not start again');
    const farPage = Math.min(FAR_PAGE, Math.floor(count / PAGE / 2));
    const after = idAt(count - (farPage - 1) * PAGE);
    const queries = { first: `limit=${PAGE}`, far: `limit=${PAGE}&after=${after}` };
    return {
      hosted: { count, farPage, ...(await measurePages(bench, { service, key, queries })) },
    };
  },

  columns: [
    'target',
    'receipts',
    'first p50',
    'p99',
    'page',
    'its p50',
    'p99',
    '/livez p50',
    'p99',
  ],
  row: ({ count, farPage, first, far, floor }) => [
    count,
    first.p50,
    first.p99,
    farPage,
    far.p50,
    far.p99,
    floor.p50,
    floor.p99,
  ],
};

/**
 * By turns with `/livez`, which asks no store: it shows what else the machine did meanwhile, for the
 * slowest of a hundred calls is the machine's as often as the service's.
 */
async function measurePages(bench, { service, key, queries }) {
  const connection = new Connection(service);
  const times = { first: [], far: [], floor: [] };
  for (let at = -WARM_CALLS; at < bench.choose(QUICK_CALLS, CALLS); at += 1) {
    for (const [name, all] of Object.entries(times)) {
      const query = queries[name];
      const path = query === undefined ? '/livez' : `/v1/svc/requests?${query}`;
      const { ms, page } = await callOne(connection, { service, key, path });
      if (query !== undefined && page.data.length !== PAGE) throw new Error('a page is too short');
      if (at >= 0) all.push(ms);
    }
  }
  connection.close();
  const summaryOf = (all) => ({ p50: median(all), p99: percentile(all, 0.99) });
  return Object.fromEntries(Object.entries(times).map(([name, all]) => [name, summaryOf(all)]));
}

async function callOne(connection, { service, key, path }) {
  const headers = { authorization: `Bearer ${key}` };
  const request = encodeRequest({
    host: `${service.host}:${service.port}`,
    path,
    method: 'GET',
    headers,
  });
  const parts = [];
  const onData = (bytes) => parts.push(Buffer.from(bytes));
  const { status, sentAt, endedAt } = await connection.request(request, { onData });
  if (status !== 200) throw new Error(`${path} was answered ${status}`);
  return { ms: endedAt - sentAt, page: JSON.parse(Buffer.concat(parts).toString()) };
}

/**
 * In a process of its own: a connection of the driver closes, and writes the log of 4 GB into the file, only
 * when its statements are collected. The service would start meanwhile and find its file locked.
 */
function addReceipts(file, count) {
  const { status } = spawnSync(process.execPath, [FILLER, file, String(count)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status !== 0) throw new Error('the receipts were not added');
}
