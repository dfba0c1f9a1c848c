import type { Reporter, TestModule } from "vitest/node";

/** Ends a run with one plain line of counts, for programs that read logs. */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) for (const test of module.children.allTests()) counts[test.result().state] += 1;
    const failedFiles = modules.filter((module) => module.errors().length > 0).length;
    console.log(`\n${counts.passed} passed, ${counts.failed + failedFiles} failed, ${counts.skipped} skipped`);
  }
}
