/** A page of a long list of receipts: the first one, and one far behind. */
import { createRequire } from 'node:module';
import { Connection, encodeRequest } from '../../lib/connection.mjs';
import { median, percentile } from '../../lib/statistics.mjs';

const PAGE = 20;
const FAR_PAGE = 10_000;
const CALLS = 400;
const QUICK_CALLS = 100;
const WARM_CALLS = 20;
/** Receipts of the past, a millisecond after each other; their ids count up. */
const TIME_HEX = 12;
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const FIRST_MS = Date.UTC(2025, 0, 1);

export const list = {
  title: 'Ms for a page of 20 of a long list of receipts',

  async measure({ bench, service, key, options }) {
    const count = Number(options.receipts);
    service.forget();
    await bench.stop(service);
    await addReceipts(service.database, count);
    if (!(await bench.start(service))) throw new Error('the service did not start again');
    const farPage = Math.min(FAR_PAGE, Math.floor(count / PAGE / 2));
    const after = idAt(count - (farPage - 1) * PAGE);
    const timesOf = (query) => measurePage(bench, { service, key, query });
    const first = await timesOf(`limit=${PAGE}`);
    const far = await timesOf(`limit=${PAGE}&after=${after}`);
    return { hosted: { count, farPage, first, far } };
  },

  columns: ['target', 'receipts', 'first p50', 'p99', 'page', 'its p50', 'p99'],
  row: ({ count, farPage, first, far }) => [count, first.p50, first.p99, farPage, far.p50, far.p99],
};

async function measurePage(bench, { service, key, query }) {
  const connection = new Connection(service);
  const path = `/v1/svc/requests?${query}`;
  const headers = { authorization: `Bearer ${key}` };
  const host = `${service.host}:${service.port}`;
  const request = encodeRequest({ host, path, method: 'GET', headers });
  const times = [];
  for (let at = -WARM_CALLS; at < bench.choose(QUICK_CALLS, CALLS); at += 1) {
    const parts = [];
    const onData = (bytes) => parts.push(Buffer.from(bytes));
    const { status, sentAt, endedAt } = await connection.request(request, { onData });
    const page = status === 200 ? JSON.parse(Buffer.concat(parts).toString()) : { data: [] };
    if (page.data.length !== PAGE)
      throw new Error(`a page was ${status}, ${page.data.length} long`);
    if (at >= 0) times.push(endedAt - sentAt);
  }
  connection.close();
  return { p50: median(times), p99: percentile(times, 0.99) };
}

/** Copies of a receipt of this run. The service does not run meanwhile. */
async function addReceipts(file, count) {
  const { DatabaseSync } = createRequire(import.meta.url)('@photostructure/sqlite');
  const database = new DatabaseSync(file);
  try {
    const row = database.prepare("SELECT * FROM receipts WHERE tenant = 'default' LIMIT 1").get();
    if (row === undefined) throw new Error('there is no receipt to copy');
    database.exec('BEGIN');
    const names = Object.keys(row);
    const places = names.map(() => '?').join(', ');
    const insert = database.prepare(
      `INSERT INTO receipts (${names.join(', ')}) VALUES (${places})`,
    );
    for (let at = 1; at <= count; at += 1) {
      const id = idAt(at);
      const body = row.body.replaceAll(row.id, id);
      insert.run(...names.map((name) => ({ ...row, id, body })[name]));
    }
    database.exec('COMMIT');
    database.exec('ANALYZE');
  } finally {
    database.close();
  }
}

/** A receipt's id: Crockford's base32 of a UUIDv7. */
function idAt(number) {
  const time = (FIRST_MS + number).toString(16).padStart(TIME_HEX, '0');
  let left = BigInt(
    `0x${time}7${number.toString(16).padStart(3, '0').slice(-3)}8${'0'.repeat(15)}`,
  );
  let text = '';
  for (let at = 0; at < 26; at += 1) {
    text = ALPHABET[Number(left & 31n)] + text;
    left >>= 5n;
  }
  return `rcpt_${text}`;
}
