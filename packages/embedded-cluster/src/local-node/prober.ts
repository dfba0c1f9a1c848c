import { sleep } from "./follow.ts";
import type { ProbePlan } from "./probe-plan.ts";

/** What one attempt found. */
export interface ProbeResult {
  readonly ok: boolean;
  readonly message: string;
}

/** Told when a probe's threshold is crossed, in either direction, and of every counted failure. */
export interface ProbeListener {
  readonly onSuccess: () => void;
  /** `conclusive` once failureThreshold failures came in a row. Answers whether to go on. */
  readonly onFailure: (message: string, conclusive: boolean) => boolean;
}

const firstPauseMs = 50;
const pauseGrowth = 1.5;

/**
 * Probes until the signal aborts, or a failure is told to be the last. Before the first success it asks quickly, at growing distances, so that a start is
 * seen at once; such early failures count no faster than one per period. After it, it asks once per period.
 */
export async function probe(
  plan: ProbePlan,
  attempt: (signal: AbortSignal) => Promise<ProbeResult>,
  listener: ProbeListener,
  signal: AbortSignal,
): Promise<void> {
  await sleep(plan.initialDelayMs, signal);
  let pauseMs = Math.min(firstPauseMs, plan.periodMs);
  let succeeded = false;
  let successes = 0;
  let failures = 0;
  let countedAt = Date.now();
  while (!signal.aborted) {
    const result = await attempt(signal);
    if (signal.aborted) return;
    if (result.ok) {
      succeeded = true;
      failures = 0;
      if (++successes === plan.successThreshold) listener.onSuccess();
    } else {
      successes = 0;
      if (succeeded || Date.now() - countedAt >= plan.periodMs) {
        countedAt = Date.now();
        if (!listener.onFailure(result.message, ++failures >= plan.failureThreshold)) return;
      }
    }
    await sleep(succeeded ? plan.periodMs : pauseMs, signal);
    pauseMs = Math.min(plan.periodMs, pauseMs * pauseGrowth);
  }
}
