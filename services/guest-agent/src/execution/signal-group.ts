import type { Belonging } from "./belonging.ts";
import { membersOf } from "./members.ts";
import { signalProcess } from "./processes.ts";
import type { SignalName } from "./signals.ts";

/** Signals a command's process group. False: nothing of it is left. `admit` throws in the step in which the caller may not any more. */
export async function signalGroup(command: Belonging, signal: SignalName, admit: () => void): Promise<boolean> {
  admit();
  // Until its exit has been taken the leader's pid cannot be anybody else's, and with it the whole group is reached in one step.
  if (command.leaderGoneTicks === undefined) return signalWhole(command.leader, signal);
  const members = (await membersOf(command)).filter(({ group }) => group === command.leader);
  admit();
  for (const member of members) signalProcess(member, signal);
  return members.length > 0;
}

function signalWhole(group: number, signal: SignalName): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ESRCH") return false; // It ended in this very moment.
    throw error;
  }
}
