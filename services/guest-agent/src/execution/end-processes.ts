import { setTimeout as delay } from "node:timers/promises";
import { cancelConfirmMs } from "@holdfast/contract";
import type { Belonging } from "./belonging.ts";
import { membersOf } from "./members.ts";
import { type Process, signalProcess } from "./processes.ts";

const scanFirstMs = 2;
const scanMaxMs = 40;

/** What a while of looking came to: who was left at its end, or why that could not be seen. */
type Look = { readonly left: readonly Process[] } | { readonly unseen: unknown };

/** Nobody who wished the ending may any more: nothing further was signalled. Its cause is the refusal of one of them. */
export class EndingWithdrawn extends Error {
  constructor(cause: unknown) {
    super("the ending was withdrawn", { cause });
    this.name = "EndingWithdrawn";
  }
}

/**
 * Ends everything of a command: SIGTERM, `graceMs`, SIGKILL, until nothing of it is left. Resolves with what survived
 * SIGKILL for the confirmation time: nothing, unless the impossible happened. Rejects when it could not be seen by then, and with
 * EndingWithdrawn as soon as `assertWished` throws, which is asked in the same step as each signal.
 */
export async function endProcesses(
  command: Belonging,
  graceMs: number,
  assertWished: () => void,
): Promise<readonly Process[]> {
  const sweep = (members: readonly Process[], signal: NodeJS.Signals): void => {
    if (members.length === 0) return;
    try {
      assertWished();
    } catch (refusal) {
      throw new EndingWithdrawn(refusal);
    }
    for (const member of members) signalProcess(member, signal);
  };
  let asked = false;
  const lived = await untilNone(command, graceMs, (members) => {
    if (!asked) sweep(members, "SIGTERM");
    asked = true;
  });
  if ("left" in lived && lived.left.length === 0) return lived.left;
  // Killed on every scan: what forks meanwhile is caught by the next.
  const survived = await untilNone(command, cancelConfirmMs, (members) => {
    sweep(members, "SIGKILL");
  });
  if ("unseen" in survived) throw survived.unseen;
  return survived.left;
}

/** Scans, ever more rarely, until nothing is left or the time is over. */
async function untilNone(
  command: Belonging,
  forMs: number,
  each: (members: readonly Process[]) => void,
): Promise<Look> {
  const endsAtMs = performance.now() + forMs;
  for (let waitMs = scanFirstMs; ; waitMs = Math.min(scanMaxMs, waitMs * 2)) {
    const look = await lookAt(command, each);
    const leftMs = endsAtMs - performance.now();
    if (("left" in look && look.left.length === 0) || leftMs <= 0) return look;
    await delay(Math.min(waitMs, leftMs));
  }
}

/** `each` is called in the step in which it was seen. */
async function lookAt(command: Belonging, each: (members: readonly Process[]) => void): Promise<Look> {
  try {
    const left = await membersOf(command);
    each(left);
    return { left };
  } catch (error) {
    if (error instanceof EndingWithdrawn) throw error;
    return { unseen: error };
  }
}
