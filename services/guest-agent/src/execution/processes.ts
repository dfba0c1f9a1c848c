import { readdirSync, readFileSync } from "node:fs";

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

/** The processes of one command. */
export interface Belonging {
  /** The leader's pid, which is also its kernel session and process group. */
  readonly leader: number;
  readonly leaderStartTicks: number;
  /** When it was started, on the clock of performance.now(). */
  readonly startedAtMs: number;
  /** An environment entry that only this command's processes inherit, `NAME=value`. */
  readonly marker: string;
  /**
   * When the leader had exited, in the ticks of `startTicks`; undefined while it runs. From then on its number is free once its
   * session is empty. Set once, by whoever saw the exit.
   */
  leaderGoneTicks?: number;
}

/** A command younger than this cannot have seen the pids of its namespace go round. */
const pidsGoRoundMs = 2_000;
/** Looking at more pids than this one by one costs more than listing those there are. */
const directLooksMax = 32;

/** Undefined when there is no such process any more. Throws where that cannot be known, as without free descriptors. */
export function readProcess(pid: number): Process | undefined {
  const stat = readOf(pid, "stat", "utf8");
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

/**
 * Everything of a command that still lives (throws where that cannot be known): its kernel session, what left the session but carries the marker, and what
 * descends from either. A process that left the session, lost its parent and cleared its environment is not found.
 */
export function membersOf(command: Belonging): Process[] {
  const { leader, leaderStartTicks, leaderGoneTicks } = command;
  const candidates: Process[] = [];
  let reused = false;
  // A session's number is not given again while it has members. Without one from the leader's time, it may be a stranger's.
  let continued = leaderGoneTicks === undefined;
  for (const pid of candidatePidsOf(command)) {
    if (pid <= 1 || pid === process.pid) continue;
    const found = readProcess(pid);
    if (found === undefined || found.startTicks < leaderStartTicks) continue;
    if (pid === leader && found.startTicks !== leaderStartTicks) reused = true;
    // Started in the very tick of the leader's end counts too: the pids cannot have gone round within it.
    if (leaderGoneTicks !== undefined && found.session === leader && found.startTicks <= leaderGoneTicks)
      continued = true;
    if (!isGone(found)) candidates.push(found);
  }
  const members = new Map<number, Process>();
  for (const candidate of candidates) {
    const inSession = continued && !reused && candidate.session === leader;
    if (inSession || hasMarker(candidate.pid, command.marker)) members.set(candidate.pid, candidate);
  }
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const candidate of candidates) if (members.has(candidate.parent)) members.set(candidate.pid, candidate);
  }
  return [...members.values()];
}

/**
 * The pids that a command's processes can have. Pids are given out upwards, so those of a short command lie between its leader's and
 * the last one given, unless the count has begun anew since: after most commands that is a handful instead of a scan of /proc.
 */
function candidatePidsOf(command: Belonging): readonly number[] {
  if (performance.now() - command.startedAtMs < pidsGoRoundMs) {
    const lastPid = Number(readFileSync("/proc/loadavg", "utf8").trim().split(" ").at(-1));
    const count = lastPid - command.leader + 1;
    if (count >= 1 && count <= directLooksMax) return Array.from({ length: count }, (_, at) => command.leader + at);
  }
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Signals a process unless its pid has been reused since it was seen. */
export function signalProcess(seen: Process, signal: NodeJS.Signals): void {
  const now = readProcess(seen.pid);
  if (isGone(now) || now?.startTicks !== seen.startTicks) return;
  try {
    process.kill(seen.pid, signal);
  } catch {
    // Gone meanwhile, or not ours to signal: the scan that follows says which.
  }
}

function hasMarker(pid: number, marker: string): boolean {
  const environment = readOf(pid, "environ", "latin1") ?? "";
  return environment.startsWith(`${marker}\0`) || environment.includes(`\0${marker}\0`);
}

/** Undefined when the process went, or is hidden or another user's: nothing can be said of it. */
function readOf(pid: number, file: "stat" | "environ", encoding: "utf8" | "latin1"): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, encoding);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM") return undefined;
    throw error; // Without descriptors or memory to look, gone is not known.
  }
}
