/** Recall and capture of the two stores in one run: `npm run bench:hosted -- --engine postgres`. */
import { buildProduct } from '../../lib/product.mjs';

const SIZES = { space: 100_000, table: 300_000, questions: 200, captures: 200 };
const QUICK = { space: 20_000, table: 60_000, questions: 60, captures: 60 };

/** Time to first byte over SQLite's is bounded by what a recall takes over SQLite's. */
const BARS = {
  'recall, p50 ms over SQLite': [
    ({ postgres, sqlite }) => postgres.recallNew.p50 - sqlite.recallNew.p50,
    25,
  ],
  'recall, all words new, p99 ms': [({ postgres }) => postgres.recallNew.p99, 70],
  'server CPU of a recall with counts known, ms': [
    ({ postgres }) => postgres.recallAgain.serverCpuMs,
    12,
  ],
  'capture of 16, p50 ms': [({ postgres }) => postgres.capture.p50, 12],
  'capture of 16, p99 ms': [({ postgres }) => postgres.capture.p99, 60],
  'a record of 2 kB with its indexes, bytes': [({ bytesOfRecord }) => bytesOfRecord.whole, 9000],
};

export async function measureEngine({ isQuick, own }) {
  const product = await buildProduct({
    engine: 'bench/hosted/engine/main.ts',
    'service-store-worker': 'src/adapters/service-store/worker.ts',
  });
  try {
    const sizes = { ...(isQuick ? QUICK : SIZES), ...own };
    const results = await product.modules.engine.measureEngines(sizes);
    const bars = Object.entries(BARS).map(([what, [valueOf, bar]]) => {
      const value = Math.round(valueOf(results) * 10) / 10;
      return { what, value, bar, isMet: value <= bar };
    });
    return { ...results, bars };
  } finally {
    product.remove();
  }
}
