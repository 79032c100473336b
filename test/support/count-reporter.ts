import type { Reporter, TestModule } from 'vitest/node';

/** Ends the output with one plain line that a machine can read: `N passed, N failed, N skipped`. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    let passed = 0;
    // A module that cannot be loaded runs none of its tests: it counts as one failure.
    let failed = errors.length;
    const skipped: string[] = [];
    for (const module of modules) {
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped.push(`${module.relativeModuleId} > ${test.fullName}`);
      }
    }
    for (const name of skipped) process.stdout.write(`SKIPPED ${name}\n`);
    process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
  }
}
