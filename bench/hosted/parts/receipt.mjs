/** CPU that a receipt costs, over all threads: hashes of a request of 36 kB, journal, signature, batch. */
import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { buildProduct } from '../../lib/product.mjs';

const REQUEST_BYTES = 36_000;
const ANSWER_BYTES = 8_000;
/** A provider's events, each a chunk of its own. */
const ANSWER_CHUNKS = 40;
const WARM = 500;
const RECEIPTS = 3_000;
const QUICK_RECEIPTS = 800;
/** Under way at once, so that batches fill as they do under load. */
const AT_ONCE = 50;

const ENTRIES = {
  journal: 'service/src/adapters/journals/receipt-journal.ts',
  store: 'service/src/adapters/service-store/sqlite-service-store.ts',
  hashes: 'service/src/server/models/body-hashes.ts',
  facts: 'service/test/support/receipt-facts.ts',
  'service-store-worker': 'service/src/adapters/service-store/worker.ts',
};

export const receipt = {
  title: 'CPU of a receipt, ms, all threads together',

  async measure({ bench, folder }) {
    const { modules, remove } = await buildProduct(ENTRIES);
    const place = join(folder, 'receipts');
    mkdirSync(place, { recursive: true, mode: 0o700 });
    try {
      return {
        hosted: await measureReceipts(modules, place, bench.choose(QUICK_RECEIPTS, RECEIPTS)),
      };
    } finally {
      remove();
    }
  },

  columns: ['target', 'CPU ms', 'receipts'],
  row: ({ cpuMs, count }) => [cpuMs, count],
};

async function measureReceipts({ journal, store, hashes, facts }, folder, count) {
  const report = (line) => process.stderr.write(`# ${line}\n`);
  const opened = store.openServiceStore({ folder, creates: true, serves: true, report });
  const receipts = new journal.ReceiptJournal({
    folder,
    node: `node_${randomBytes(12).toString('hex')}`,
    version: 'bench',
    store: opened,
    sign: facts.testSigner().sign,
    now: () => Date.now(),
    report,
  });
  const request = randomBytes(REQUEST_BYTES);
  const chunk = randomBytes(ANSWER_BYTES / ANSWER_CHUNKS);
  const one = () => {
    const at = Date.now();
    const body = new hashes.BodyHashes(request);
    body.forwarded([request]);
    const open = receipts.open(facts.openingOf({ at }));
    const watch = body.watching(undefined);
    for (let part = 0; part < ANSWER_CHUNKS; part += 1) watch.data(chunk);
    const { request: own, forwarded, response } = body.known();
    open.close(facts.closingOf({ hashes: { request: own, forwarded, response } }));
  };
  const run = async (times) => {
    for (let done = 0; done < times; done += AT_ONCE) {
      for (let at = 0; at < AT_ONCE; at += 1) one();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    if (!(await receipts.flush())) throw new Error('receipts could not be stored');
  };
  try {
    // Its schema is made before the first receipt comes.
    await opened.health();
    await run(WARM);
    const before = process.cpuUsage();
    await run(count);
    const { user, system } = process.cpuUsage(before);
    return { cpuMs: (user + system) / 1000 / count, count };
  } finally {
    await receipts.close();
    await opened.close();
  }
}
