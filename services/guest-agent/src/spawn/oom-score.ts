import { readFileSync, writeFileSync } from "node:fs";

/** How much sooner than the agent the kernel ends what it started: as if that used a fifth of the memory more. */
const workloadMore = 200;
const scoreMax = 1_000;

let workloadScore: string | undefined;

/**
 * When memory runs out, the workload goes before the agent, which can then say so (G34). What it forks inherits this. Without effect
 * where the kernel does not allow it: raising one's own is everybody's right, but not every sandbox's.
 */
export function endBeforeAgent(pid: number): void {
  try {
    workloadScore ??= String(
      Math.min(scoreMax, Number(readFileSync("/proc/self/oom_score_adj", "latin1")) + workloadMore),
    );
    writeFileSync(`/proc/${pid}/oom_score_adj`, workloadScore);
  } catch {
    // Gone already, or not allowed: the program runs all the same.
  }
}
