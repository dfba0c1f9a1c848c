import { invalid } from "../execution/start-wish.ts";

const served = ["HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "WINCH", "CONT", "STOP"] as const;

/** A signal by its name, with or without "SIG"; `whenEmpty` where none is given. Unknown ones are refused. */
export function parseSignal(text: string, whenEmpty?: NodeJS.Signals): NodeJS.Signals {
  if (text === "" && whenEmpty !== undefined) return whenEmpty;
  const name = served.find((known) => known === text || `SIG${known}` === text);
  if (name === undefined) throw invalid("signal", `must be one of ${served.join(", ")}`);
  return `SIG${name}`;
}
