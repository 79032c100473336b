import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { ForksPoolWorker, type WorkerRequest } from 'vitest/node';

/**
 * Tests use real sockets, processes and terminals on a machine that may be busy, so a test that fails
 * runs once more. The count reporter counts such tests as flaky. Where a race would be the bug, it
 * counts them as failed.
 */
const RETRIES = 1;

/** Much of a test is waiting for sockets, processes and disks: each core has time for more than one. */
const WORKERS = availableParallelism() + 1;

/**
 * Files that one process runs: each leaves 4 MB in it, and a process that ends takes with it what a file forgot. A new
 * one loads the code again, for some ten seconds of a processor.
 */
const FILES_MAX = 75;

/** A process that runs file after file. To load the code again for each would take a fifth of the time. */
class SharedProcess extends ForksPoolWorker {
  override readonly name = 'shared-process';
  #files = 0;

  override send(message: WorkerRequest): void {
    if (message.type === 'run') this.#files += 1;
    super.send(message);
  }

  canReuse(): boolean {
    return this.#files < FILES_MAX;
  }
}

/** Kills, outages, whole builds, every engine, and what takes many seconds of a processor: `npm run test:long`. */
const LONG = [
  'test/long/**/*.test.ts',
  'test/package/{build-beside,from-clone,installed,release}.test.ts',
  'test/cli/{found-lines.prop,other-build}.test.ts',
  'test/core/{cache-miss.prop,client-edits}.test.ts',
  'test/proxy/{batch-histories,cache-prefix,state-histories}.prop.test.ts',
  'test/ui/views.test.ts',
  'service/test/**/*{kill,kills,failover,outages}.test.ts',
  'service/test/ports/{postgres-18,postgres-pooler,same-answers}.test.ts',
  'service/test/server/{hosted-secrets,provider-loops,two-nodes,two-tenants.prop}.test.ts',
];

export default defineConfig({
  test: {
    maxWorkers: WORKERS,
    // Of the whole run: the projects do not build again.
    globalSetup: ['test/support/build-once.ts'],
    reporters: ['default', './test/support/count-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          // The price is in test/support/every-file.ts: a file leaves its process as it was.
          isolate: false,
          pool: { name: 'shared-process', createPoolWorker: (asked) => new SharedProcess(asked) },
          include: ['test/**/*.test.ts', 'service/test/**/*.test.ts'],
          exclude: ['test/clients/**', ...LONG],
          setupFiles: ['test/support/every-file.ts', 'test/support/same-thread.ts'],
          // Limits find what hangs, and measure nothing: a machine that runs much else is no failure.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 30_000 } },
          retry: RETRIES,
          // The processes of the tests must not ask for the public catalog of models.
          env: { SVC_CATALOG_URL: 'off' },
        },
      },
      {
        // A race in them is the bug, so none runs a second time.
        test: {
          name: 'long',
          include: LONG,
          setupFiles: ['test/support/every-file.ts'],
          testTimeout: 600_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 30_000 } },
          env: { SVC_CATALOG_URL: 'off' },
        },
      },
      {
        // Real clients from the registry: slow, and skipped aloud where they cannot be installed.
        test: {
          name: 'clients',
          include: ['test/clients/**/*.test.ts'],
          testTimeout: 300_000,
          expect: { poll: { timeout: 60_000 } },
          retry: RETRIES,
          env: { SVC_CATALOG_URL: 'off' },
          hookTimeout: 900_000,
        },
      },
      { test: { name: 'fuzz', include: ['test/fuzz/*.fuzz.ts'], testTimeout: 120_000 } },
    ],
  },
});
