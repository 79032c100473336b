import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    reporters: ['default', './test/support/count-reporter.ts'],
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/clients/**'],
          testTimeout: 15_000,
          globalSetup: ['test/support/build-once.ts'],
        },
      },
      {
        // Real clients from the registry: slow, and skipped aloud where they cannot be installed.
        test: {
          name: 'clients',
          include: ['test/clients/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 900_000,
          fileParallelism: false,
          globalSetup: ['test/support/build-once.ts'],
        },
      },
      { test: { name: 'fuzz', include: ['test/fuzz/*.fuzz.ts'], testTimeout: 120_000 } },
    ],
  },
});
