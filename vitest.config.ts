import { configDefaults, defineConfig } from "vitest/config";

/** What measures time or memory, or loads the machine: one file at a time, with nothing beside it. */
const alone = [
  "test/scale/**/*.test.ts",
  "test/cluster-scale/**/*.test.ts",
  "test/rpc/throughput.test.ts",
  "test/whole/unread.test.ts",
];

/** Real processes and real clusters, each of its own. */
const whole = {
  testTimeout: 240_000,
  hookTimeout: 120_000,
  // A busy machine is late, not wrong. What passed only at its second try is named at the end. (docs/decisions/0014-second-try.md)
  retry: 1,
};

// Most tests wait for processes, sockets and deadlines: more of them at once than the machine has cores keep it busy, and more than
// these starve each other's deadlines. (docs/decisions/0016-tests-side-by-side.md)
export default defineConfig({
  test: {
    reporters: ["default", "./tools/closing-line-reporter.ts"],
    projects: [
      {
        test: {
          name: "unit",
          include: ["packages/*/src/**/*.test.ts", "services/*/src/**/*.test.ts", "services/*/*.test.ts"],
          testTimeout: 60_000,
          retry: 1,
          expect: { poll: { timeout: 15_000 } },
          maxWorkers: 4,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { name: "house", include: ["test/*.test.ts"], testTimeout: 60_000, maxWorkers: 4 } },
      {
        test: {
          ...whole,
          name: "whole",
          include: ["test/*/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...alone],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...whole,
          name: "alone",
          include: alone,
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
