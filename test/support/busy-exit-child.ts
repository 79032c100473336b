import { createRequire } from 'node:module';
import { StoreClient } from '../../src/adapters/store/client.ts';

/**
 * A process that ends inside a call of its store's worker which takes more than a second of work, with
 * the native driver and as the worker's own loop marks it.
 */
const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite');
const code = `
  import { createRequire } from 'node:module';
  import { parentPort, workerData } from 'node:worker_threads';
  const { DatabaseSync } = createRequire(${JSON.stringify(driver)})(${JSON.stringify(driver)});
  const { control } = workerData;
  const database = new DatabaseSync(':memory:');
  const count = database.prepare(
    'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 12000000) SELECT count(*) AS n FROM c',
  );
  parentPort.postMessage({ kind: 'report', line: 'at work' });
  count.all();
  Atomics.store(control, 0, 0);
  Atomics.notify(control, 0);
  parentPort.on('message', () => {});
`;
const client = new StoreClient({
  folder: '',
  report: () => process.exit(3),
  worker: new URL(`data:text/javascript,${encodeURIComponent(code)}`),
});
client.call('isWhole', undefined).catch(() => undefined);
