import { setTimeout as delay } from "node:timers/promises";
import { cancelConfirmMs } from "@holdfast/contract";
import { type Belonging, membersOf, type Process, signalProcess } from "./processes.ts";

const scanFirstMs = 2;
const scanMaxMs = 40;

/**
 * Ends everything of a command: SIGTERM, `graceMs`, SIGKILL, until nothing of it is left. Resolves with what survived
 * SIGKILL for the confirmation time: nothing, unless the impossible happened.
 */
export async function endProcesses(command: Belonging, graceMs: number): Promise<readonly Process[]> {
  for (const member of membersOf(command)) signalProcess(member, "SIGTERM");
  const lived = await untilNone(command, graceMs, () => undefined);
  if (lived.length === 0) return lived;
  // Killed on every scan: what forks meanwhile is caught by the next.
  return untilNone(command, cancelConfirmMs, (member) => signalProcess(member, "SIGKILL"));
}

/** Scans, ever more rarely, until nothing is left or the time is over. */
async function untilNone(command: Belonging, forMs: number, each: (member: Process) => void): Promise<Process[]> {
  const endsAtMs = performance.now() + forMs;
  for (let waitMs = scanFirstMs; ; waitMs = Math.min(scanMaxMs, waitMs * 2)) {
    const members = membersOf(command);
    for (const member of members) each(member);
    const leftMs = endsAtMs - performance.now();
    if (members.length === 0 || leftMs <= 0) return members;
    await delay(Math.min(waitMs, leftMs));
  }
}
