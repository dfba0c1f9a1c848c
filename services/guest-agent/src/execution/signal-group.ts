import { AnsweredError } from "@holdfast/guest-link";
import { type Belonging, membersOf, signalProcess } from "./processes.ts";

/** The signals that may be sent by name. */
const signalNames = ["HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "WINCH", "CONT", "STOP"] as const;

export type SignalName = `SIG${(typeof signalNames)[number]}`;

/** Refuses what is no signal that may be sent. */
export function parseSignal(text: string): SignalName {
  const name = signalNames.find((known) => text === known || text === `SIG${known}`);
  if (name !== undefined) return `SIG${name}`;
  throw new AnsweredError(
    "INVALID_REQUEST",
    `Nothing was signalled: ${JSON.stringify(text)} is none of ${signalNames.join(", ")}.`,
    { field: "signal" },
  );
}

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
