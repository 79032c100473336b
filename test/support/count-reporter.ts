import type { Reporter, TestModule } from 'vitest/node';

/** Pure, or random: what failed once here has failed, whatever the next try drew. */
const WITHOUT_SECOND_TRY = /^test\/core\/|\.prop\.test\.ts$/;

/** Ends the output with one plain line that a machine can read: `N passed, N failed, N skipped`. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]): void {
    let passed = 0;
    // A module that cannot be loaded runs none of its tests: it counts as one failure.
    let failed = errors.length;
    const skipped: string[] = [];
    const flaky: string[] = [];
    for (const module of modules) {
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        const name = `${module.relativeModuleId} > ${test.fullName}`;
        const isFlaky = state === 'passed' && test.diagnostic()?.flaky === true;
        if (isFlaky) flaky.push(name);
        if (isFlaky && WITHOUT_SECOND_TRY.test(module.relativeModuleId)) failed += 1;
        else if (state === 'passed') passed += 1;
        else if (state === 'failed') failed += 1;
        else skipped.push(name);
      }
    }
    for (const name of flaky) process.stdout.write(`FLAKY, passed when run again: ${name}\n`);
    for (const name of skipped) process.stdout.write(`SKIPPED ${name}\n`);
    process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
    if (failed > 0) process.exitCode = 1;
  }
}
