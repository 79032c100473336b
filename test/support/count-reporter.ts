import type { Reporter, TestModule } from 'vitest/node';

/**
 * A pass on the second try counts as a failure here: these tests are pure or random, or a race in
 * them is itself the bug (store, ledger, outbox, journals, kills).
 */
export const WITHOUT_SECOND_TRY =
  /^(?:service\/)?test\/(?:core|ports|long)\/|\.prop\.test\.ts$|(?:store|ledger|outbox|journal|kill|cut-answers|possessions|conversation-state)[\w-]*\.test\.ts$/;

/**
 * Ends the output with plain lines that a machine can read: the flaky tests and their number, then
 * `N passed, N failed, N skipped`.
 */
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
        const isBug = isFlaky && WITHOUT_SECOND_TRY.test(module.relativeModuleId);
        if (isFlaky) flaky.push(isBug ? `${name} (counted as failed)` : name);
        if (isBug || state === 'failed') failed += 1;
        else if (state === 'passed') passed += 1;
        else skipped.push(name);
      }
    }
    for (const name of skipped) process.stdout.write(`SKIPPED ${name}\n`);
    process.stdout.write(
      `${[`${flaky.length} flaky`, flaky.join('; ')].filter(Boolean).join(': ')}\n`,
    );
    process.stdout.write(`${passed} passed, ${failed} failed, ${skipped.length} skipped\n`);
    if (failed > 0) process.exitCode = 1;
  }
}
