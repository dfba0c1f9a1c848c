import { agentStopQuiesceMs, agentStopWatchdogMs, quiesceGraceMaxMs } from "@holdfast/contract";
import type { Flush } from "./flush.ts";
import type { ProcessScope } from "./process-scope.ts";
import { named } from "./quiesce.ts";
import { stopPrograms } from "./stop-programs.ts";

/** Kept for what comes after the flush: the last results, and closing. */
const closingMs = 3_000;

/**
 * Brings the guest to rest before the agent goes (G26): stops all programs, then writes the disk out with what is left of the time.
 * Never rejects: what could not be done is logged, and the pod ends all the same.
 */
export async function stopGuest(scope: ProcessScope, flush: Flush | undefined): Promise<void> {
  const startedAtMs = performance.now();
  try {
    const never = new AbortController().signal;
    const { left, stopped } = await stopPrograms(scope, quiesceGraceMaxMs, never, agentStopQuiesceMs);
    if (left.length > 0) console.error(`stopping: ${left.length} processes are left: ${named(left)}`);
    else console.error(`stopping: ${stopped.length} processes ended`);
  } catch (error) {
    console.error("stopping: the guest's processes could not be looked at:", error);
  }
  try {
    await flush?.run(agentStopWatchdogMs - closingMs - (performance.now() - startedAtMs));
  } catch (error) {
    console.error("stopping:", error instanceof Error ? error.message : error);
  }
}
