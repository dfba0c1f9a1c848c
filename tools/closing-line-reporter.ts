import { writeSync } from "node:fs";
import type { Reporter, SerializedError, TestModule, TestRunEndReason } from "vitest/node";

const verdictFd = process.env.HOLDFAST_VERDICT_FD;
delete process.env.HOLDFAST_VERDICT_FD; // for this process alone, not for what tests start

/**
 * Ends a run with one plain line of counts, for programs that read logs, after the names of tests that needed a second try. Tells the
 * launcher the verdict, where it listens (run-step.mjs).
 */
export default class ClosingLineReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[], reason: TestRunEndReason): void {
    const counts = { passed: 0, failed: 0, skipped: 0, pending: 0 };
    for (const module of modules) for (const test of module.children.allTests()) counts[test.result().state] += 1;
    const second = modules.flatMap((module) =>
      [...module.children.allTests()].filter((test) => test.diagnostic()?.flaky),
    );
    for (const test of second)
      console.log(`\npassed only at its second try: ${test.module.relativeModuleId} > ${test.fullName}`);
    const failedFiles = modules.filter((module) => module.errors().length > 0).length;
    const late = second.length === 0 ? "" : `, ${second.length} of the passed at a second try`;
    console.log(`\n${counts.passed} passed, ${counts.failed + failedFiles} failed, ${counts.skipped} skipped${late}`);
    if (verdictFd !== undefined)
      writeSync(Number(verdictFd), reason === "passed" && errors.length === 0 ? "passed\n" : "failed\n");
  }
}
