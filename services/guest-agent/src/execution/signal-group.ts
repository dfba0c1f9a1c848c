import { leftoversNamedMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { Belonging } from "./belonging.ts";
import { membersOf } from "./members.ts";
import { type Process, send, signalProcess } from "./processes.ts";
import type { SignalName } from "./signals.ts";

/**
 * Signals a command's process group. False: nothing of it is left. Rejects with INVALID_REQUEST when all that is left is another user's.
 * `admit` throws in the step in which the caller may not any more.
 */
export async function signalGroup(command: Belonging, signal: SignalName, admit: () => void): Promise<boolean> {
  admit();
  // Until its exit has been taken the leader's pid cannot be anybody else's, and with it the whole group is reached in one step.
  if (command.leaderGoneTicks === undefined) {
    const sent = send(-command.leader, signal);
    if (sent === "denied") throw notPermitted(signal, await groupOf(command));
    return sent === "sent";
  }
  const members = await groupOf(command);
  admit();
  const sent = members.map((member) => signalProcess(member, signal));
  if (sent.includes("denied") && !sent.includes("sent")) throw notPermitted(signal, members);
  return members.length > 0;
}

async function groupOf(command: Belonging): Promise<readonly Process[]> {
  return (await membersOf(command)).filter(({ group }) => group === command.leader);
}

/** The kernel did not let the agent's user signal any of these. */
export function notPermitted(signal: string, members: readonly Process[]): AnsweredError {
  const named = members.slice(0, leftoversNamedMax).map(({ pid, name }) => `${pid} (${name})`);
  return new AnsweredError(
    "INVALID_REQUEST",
    `${signal} was not sent: the guest's user may not signal what it is for, which is another user's: ${named.join(", ")}. Nothing was ` +
      "signalled. Signal it from within, as that user, or suspend and resume the workspace, which ends everything.",
    { field: "signal", cause: "EPERM", not_reached: named.join(",") },
  );
}
