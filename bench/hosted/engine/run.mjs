/** PostgreSQL beside SQLite in one run: `npm run bench:hosted -- --engine postgres`. */
import os from 'node:os';
import { unpinDriver } from '../../lib/processes.mjs';
import { buildProduct } from '../../lib/product.mjs';
import { measureServices } from './services.mjs';

const SIZES = { space: 100_000, table: 300_000, questions: 200, captures: 200 };
const QUICK = { space: 20_000, table: 60_000, questions: 60, captures: 60 };
const ENTRIES = {
  engine: 'bench/hosted/engine/main.ts',
  'service-store-worker': 'service/src/adapters/service-store/worker.ts',
};

function addedOverSqlite({ postgres, sqlite }) {
  return postgres['100k'].added - sqlite['100k'].added;
}

/** By name: how it is read out of the results, and what it may be at most. */
const BARS = {
  'first byte at 100 kB in a tool loop, p50 ms over SQLite': [
    ({ services }) => addedOverSqlite(services.toolLoop),
    4,
  ],
  'first byte at 100 kB on a new question, p50 ms over SQLite': [
    ({ services }) => addedOverSqlite(services.question),
    25,
  ],
  'recall, all words new, p50 ms over SQLite': [
    ({ postgres, sqlite }) => postgres.recallNew.p50 - sqlite.recallNew.p50,
    25,
  ],
  'recall, all words new, p99 ms': [({ postgres }) => postgres.recallNew.p99, 70],
  'CPU of PostgreSQL, a recall with counts known, ms': [
    ({ postgres }) => postgres.recallAgain.serverCpuMs,
    12,
  ],
  'capture of 16, p50 ms': [({ postgres }) => postgres.capture.p50, 12],
  'capture of 16, p99 ms': [({ postgres }) => postgres.capture.p99, 60],
  'capture of 16 with a synchronous standby, p50 as a multiple': [
    ({ postgres, withStandby }) => withStandby.p50 / postgres.capture.p50,
    2,
  ],
  'captured and recalled on another node, ms': [({ elsewhere }) => elsewhere.mostMs, 1000],
  'CPU of a request of 36 kB: Node, ms': [({ services }) => services.cpu.node, 2],
  'CPU of a request of 36 kB: PostgreSQL, ms': [({ services }) => services.cpu.postgres, 1.5],
  'CPU of a request of 36 kB: Redis, ms': [({ services }) => services.cpu.redis, 0.1],
  'a record of 2 kB with its indexes, bytes': [({ bytesOfRecord }) => bytesOfRecord.whole, 9000],
};

export async function measureEngine({ isQuick, own, bin }) {
  const product = await buildProduct(ENTRIES);
  try {
    const { engine } = product.modules;
    const sizes = { ...(isQuick ? QUICK : SIZES), ...own };
    const began = { load: os.loadavg(), at: new Date().toISOString() };
    const services = await measureServices({ isQuick, bin, startServers: engine.startServers });
    // The stores alone: this process, a worker, and the server with its own workers.
    unpinDriver();
    const results = { ...(await engine.measureEngines(sizes)), services };
    const bars = Object.entries(BARS).map(([what, [valueOf, bar]]) => {
      const value = Math.round(valueOf(results) * 100) / 100;
      return { what, value, bar, isMet: value <= bar };
    });
    const machine = { node: process.version, cores: os.cpus().length, cpu: os.cpus()[0]?.model };
    return {
      machine,
      began,
      ended: { load: os.loadavg(), at: new Date().toISOString() },
      ...results,
      bars,
    };
  } finally {
    product.remove();
  }
}

/** Rows of a table: recall alone, on both engines, while they grow. */
export async function measureGrowth(sizes) {
  const product = await buildProduct(ENTRIES);
  try {
    return await product.modules.engine.measureGrowth(sizes);
  } finally {
    product.remove();
  }
}
