import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { ForksPoolWorker, type PoolOptions, type WorkerRequest } from 'vitest/node';

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

/** Kills, outages, whole builds, every engine, and what takes many seconds of a processor. */
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

/**
 * Files that took over ten seconds on two cores (.ci/run, 30 November 2026), so that `npm run test:unit` ends within
 * four minutes. Most of them start servers, databases or a browser.
 */
const UNIT_SLOW = [
  'service/test/adapters/{postgres-connections,postgres-trouble,service-store}.test.ts',
  'service/test/cli/{service,service-move,service-postgres,service-redis}.test.ts',
  'service/test/ports/{postgres-store,service-store}.test.ts',
  'service/test/server/{bad-input,haproxy,hostile,model-faults,model-process-faults}.test.ts',
  'service/test/server/{provider-faults,public-url,store-away}.test.ts',
  'test/adapters/{body-decoder,git-projects,heap-bound,hosted-memory,hosted-mirror}.test.ts',
  'test/adapters/{state-outbox,store,store-forget,store-replaced,store-steady}.test.ts',
  'test/cli/{completion,connect,doctor,doctor-setups,first-fact,forget-beside}.test.ts',
  'test/cli/{hook-and-proxy,hook-faults,main,mcp,memory-away,network-proxy,new-machine}.test.ts',
  'test/cli/{other-clients,run,sixty-columns,start,terminal,top,uninstall}.test.ts',
  'test/cli/{unusable-folders,wizard}.test.ts',
  'test/local/{body-budget,hostile-input,lifecycle}.test.ts',
  'test/proxy/{edited-chat,hosted-misbehaviour,slices}.test.ts',
  'test/scripts/bench-data.test.ts',
  'test/ui/{card,memory,page,request}.test.ts',
];

/** Sessions of real clients that `npm test` plays. The other ones take over a minute or show a rarer case. */
const CLIENTS = [
  'test/clients/{abort,brief,claude-code,codex,docs,first-minute,first-run}.test.ts',
  'test/clients/{mcp,others,prompt-cache,sdks,terminal}.test.ts',
];

/** Tests use real sockets, processes and terminals: limits find what hangs, and a busy machine is no failure. */
const UNIT = {
  isolate: false,
  // The price is in test/support/every-file.ts: a file leaves its process as it was.
  pool: {
    name: 'shared-process',
    createPoolWorker: (asked: PoolOptions) => new SharedProcess(asked),
  },
  setupFiles: ['test/support/every-file.ts', 'test/support/same-thread.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  expect: { poll: { timeout: 30_000 } },
  retry: RETRIES,
  // The processes of the tests must not ask for the public catalog of models.
  env: { SVC_CATALOG_URL: 'off' },
};

/** Real clients from the registry: slow, and skipped aloud where they cannot be installed. */
const WITH_CLIENTS = {
  testTimeout: 300_000,
  hookTimeout: 900_000,
  expect: { poll: { timeout: 60_000 } },
  retry: RETRIES,
  env: { SVC_CATALOG_URL: 'off' },
};

/**
 * `npm test` runs `unit` and `clients`; `npm run test:long` runs the other ones but `fuzz`. .ci/run runs them all, one
 * after the other in one run.
 */
export default defineConfig({
  test: {
    maxWorkers: WORKERS,
    // Of the whole run: the projects do not build again.
    globalSetup: ['test/support/build-once.ts'],
    reporters: ['default', './test/support/count-reporter.ts'],
    projects: [
      {
        test: {
          ...UNIT,
          name: 'unit',
          include: ['test/**/*.test.ts', 'service/test/**/*.test.ts'],
          exclude: ['test/clients/**', ...UNIT_SLOW, ...LONG],
        },
      },
      { test: { ...UNIT, name: 'unit-slow', include: UNIT_SLOW } },
      { test: { ...WITH_CLIENTS, name: 'clients', include: CLIENTS } },
      {
        test: {
          ...WITH_CLIENTS,
          name: 'clients-slow',
          include: ['test/clients/**/*.test.ts'],
          exclude: CLIENTS,
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
      { test: { name: 'fuzz', include: ['test/fuzz/*.fuzz.ts'], testTimeout: 120_000 } },
    ],
  },
});
