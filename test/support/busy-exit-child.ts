import { createRequire } from 'node:module';
import { StoreClient } from '../../src/adapters/store/client.ts';

/**
 * A process that ends inside a call of its store's worker, with the native driver and marked as the
 * worker's own loop marks it. The call waits three seconds for a lock, which costs no work: so it takes
 * as long on a machine that is busy. Argument: an empty folder.
 */
const [, , folder = ''] = process.argv;
const driver = createRequire(import.meta.url).resolve('@photostructure/sqlite');
const code = `
  import { createRequire } from 'node:module';
  import { parentPort, workerData } from 'node:worker_threads';
  const { DatabaseSync } = createRequire(${JSON.stringify(driver)})(${JSON.stringify(driver)});
  const { control, folder } = workerData;
  const [database, other] = [1, 2].map(() => new DatabaseSync(folder + '/busy.db'));
  database.exec('CREATE TABLE t (x); PRAGMA busy_timeout = 3000');
  const statement = database.prepare('SELECT x FROM t');
  other.exec('BEGIN EXCLUSIVE');
  parentPort.postMessage({ kind: 'report', line: 'at work' });
  try {
    statement.all();
  } catch {
    // The lock is never given back.
  }
  Atomics.store(control, 0, 0);
  Atomics.notify(control, 0);
  parentPort.on('message', () => {});
`;
const client = new StoreClient({
  folder,
  report: () => process.exit(3),
  worker: new URL(`data:text/javascript,${encodeURIComponent(code)}`),
});
client.call('isWhole', undefined).catch(() => undefined);
