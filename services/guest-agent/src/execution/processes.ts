import { readFileSync } from "node:fs";

/** One process as the kernel shows it. `startTicks` tells a pid from its reuse. */
export interface Process {
  readonly pid: number;
  /** The kernel's short name. */
  readonly name: string;
  readonly state: string;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  readonly startTicks: number;
}

/** Undefined when there is no such process any more. Throws where that cannot be known, as without free descriptors. */
export function readProcess(pid: number): Process | undefined {
  const stat = readOf(pid, "stat");
  if (stat === undefined) return undefined;
  // The name may hold anything, parentheses and spaces included; what follows the last one is plain.
  const open = stat.indexOf("(");
  const close = stat.lastIndexOf(")");
  const fields = stat.slice(close + 2).split(" ");
  return {
    pid,
    name: stat.slice(open + 1, close),
    state: fields[0] ?? "",
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    startTicks: Number(fields[19]),
  };
}

/** USER_HZ, in which the kernel tells times to programs, whatever it counts in itself. */
const ticksPerSecond = 100;

/** Now, in the ticks of `startTicks`. Throws where it cannot be read. */
export function nowTicks(): number {
  return Math.floor(Number.parseFloat(readFileSync("/proc/uptime", "utf8")) * ticksPerSecond);
}

/** Zombies count as gone: they run nothing, and only their parent can remove them. */
export function isGone(process: Process | undefined): boolean {
  return process === undefined || process.state === "Z" || process.state === "X";
}

/** What became of a signal. `denied`: the process is another user's. */
export type Sent = "sent" | "gone" | "denied";

/** Signals a process unless its pid has been reused since it was seen. */
export function signalProcess(seen: Process, signal: NodeJS.Signals): Sent {
  const now = readProcess(seen.pid);
  if (isGone(now) || now?.startTicks !== seen.startTicks) return "gone";
  return send(seen.pid, signal);
}

/** Signals a process, or a process group by its negative number: `sent` where it reached any of it. */
export function send(pid: number, signal: NodeJS.Signals): Sent {
  try {
    process.kill(pid, signal);
    return "sent";
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EPERM") return "denied";
    if (code === "ESRCH") return "gone";
    throw error;
  }
}

/** The environment that it was given when its program began. Undefined as in `readOf`. */
export function readEnvironment(pid: number): string | undefined {
  return readOf(pid, "environ");
}

/** Undefined when the process went, or is hidden or another user's: nothing can be said of it. */
function readOf(pid: number, file: "stat" | "environ"): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8"); // Names and values may be any bytes; what is looked for in them is ASCII.
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM") return undefined;
    throw error; // Without descriptors or memory to look, gone is not known.
  }
}
