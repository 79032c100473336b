import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/**
 * Tests use real sockets, processes and terminals on a machine that may be busy, so a test that fails
 * runs once more. The count reporter counts such tests as flaky. Where a race would be the bug, it
 * counts them as failed.
 */
const RETRIES = 1;

/** Much of a test is waiting for sockets, processes and disks: even two cores have time for two. */
const WORKERS = Math.max(2, availableParallelism() - 1);

/** Kills, outages, long properties and whole builds: `npm run test:long`. */
const LONG = [
  'test/long/**/*.test.ts',
  'test/package/{build-beside,from-clone,installed}.test.ts',
  'test/cli/other-build.test.ts',
  'service/test/**/*{kill,kills,failover,outages}.test.ts',
  'service/test/server/two-nodes.test.ts',
];

export default defineConfig({
  test: {
    maxWorkers: WORKERS,
    reporters: ['default', './test/support/count-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts', 'service/test/**/*.test.ts'],
          exclude: ['test/clients/**', ...LONG],
          setupFiles: ['test/support/fixed-seed.ts'],
          // Limits find what hangs, and measure nothing: a machine that runs much else is no failure.
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 30_000 } },
          retry: RETRIES,
          // The processes of the tests must not ask for the public catalog of models.
          env: { SVC_CATALOG_URL: 'off' },
          globalSetup: ['test/support/build-once.ts'],
        },
      },
      {
        // A race in them is the bug, so none runs a second time.
        test: {
          name: 'long',
          include: LONG,
          setupFiles: ['test/support/fixed-seed.ts'],
          testTimeout: 600_000,
          hookTimeout: 60_000,
          expect: { poll: { timeout: 30_000 } },
          env: { SVC_CATALOG_URL: 'off' },
          globalSetup: ['test/support/build-once.ts'],
        },
      },
      {
        // Real clients from the registry: slow, and skipped aloud where they cannot be installed.
        test: {
          name: 'clients',
          include: ['test/clients/**/*.test.ts'],
          testTimeout: 300_000,
          retry: RETRIES,
          env: { SVC_CATALOG_URL: 'off' },
          hookTimeout: 900_000,
          globalSetup: ['test/support/build-once.ts'],
        },
      },
      { test: { name: 'fuzz', include: ['test/fuzz/*.fuzz.ts'], testTimeout: 120_000 } },
    ],
  },
});
