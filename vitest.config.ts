import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    reporters: ["default", "./tools/closing-line-reporter.ts"],
    projects: [
      {
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "services/*/src/**/*.test.ts", "services/*/*.test.ts"],
          testTimeout: 60_000,
          // A busy machine is late, not wrong. What passed only at its second try is named at the end. (docs/decisions/0014-second-try.md)
          retry: 1,
          expect: { poll: { timeout: 15_000 } },
        },
      },
      { test: { name: "house", include: ["test/*.test.ts"], testTimeout: 60_000 } },
      {
        test: {
          // Real processes and a real cluster: one file at a time, so that one does not starve another's deadlines.
          name: "whole",
          include: ["test/*/**/*.test.ts"],
          testTimeout: 240_000,
          hookTimeout: 120_000,
          retry: 1,
          fileParallelism: false,
        },
      },
    ],
  },
});
