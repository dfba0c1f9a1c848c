import { AnsweredError } from "@holdfast/guest-link";

/** The signals that may be sent by name. */
const signalNames = ["HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "WINCH", "CONT", "STOP"] as const;

export type SignalName = `SIG${(typeof signalNames)[number]}`;

/** A signal by its name, with or without "SIG"; `whenEmpty` where none is given. Refuses what is none that may be sent. */
export function parseSignal(text: string, whenEmpty?: SignalName): SignalName {
  if (text === "" && whenEmpty !== undefined) return whenEmpty;
  const name = signalNames.find((known) => text === known || text === `SIG${known}`);
  if (name !== undefined) return `SIG${name}`;
  throw new AnsweredError(
    "INVALID_REQUEST",
    `Nothing was signalled: ${JSON.stringify(text)} is none of ${signalNames.join(", ")}.`,
    { field: "signal" },
  );
}
