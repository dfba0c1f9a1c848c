import { type Belonging, membersOf, signalProcess } from "./processes.ts";
import type { SignalName } from "./signals.ts";

/** Signals a command's process group. False: nothing of it is left. */
export function signalGroup(command: Belonging, signal: SignalName): boolean {
  // Until its exit has been taken the leader's pid cannot be anybody else's, and with it the whole group is reached in one step.
  if (command.leaderGoneTicks === undefined) {
    process.kill(-command.leader, signal);
    return true;
  }
  const members = membersOf(command).filter(({ group }) => group === command.leader);
  for (const member of members) signalProcess(member, signal);
  return members.length > 0;
}
