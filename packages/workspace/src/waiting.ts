import { backoffMs, Deadline, pause, type Subscription } from "@holdfast/async";
import { clusterRequestTimeoutMs, waitRereadMs } from "@holdfast/contract";
import type { WorkspaceDeps } from "./deps.ts";

const conflictBackoff = { firstMs: 50, maxMs: 2_000 };

/** The longest time to the next look after one that failed. */
export const rereadAfterFailureMs = 1_000;

/** Waits for a change, at most `atMostMs` (the time between two looks, whatever the watch says). Throws when the deadline is over. */
export async function awaitChange(changes: Subscription, within: Deadline, atMostMs = waitRereadMs): Promise<void> {
  using tick = within.within(atMostMs);
  try {
    await changes.next(tick.signal);
  } catch (error) {
    within.throwIfOver();
    if (!tick.expired) throw error;
  }
}

/** The jittered pause before a write is tried again on a fresh reading. */
export function pauseBeforeRetry(deps: WorkspaceDeps, attempt: number, within: Deadline): Promise<void> {
  return pause(deps.clock, backoffMs(conflictBackoff, attempt, Math.random()), within.signal);
}

/** A write's own time. No caller can cancel it: a write that is cut off has an unknown ending. */
export function writeDeadline(deps: WorkspaceDeps): Deadline {
  return new Deadline(deps.clock, clusterRequestTimeoutMs);
}
