import { readdirSync, readFileSync } from "node:fs";
import { lastPid, PidLaps } from "./pid-laps.ts";

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
  /** In which the leader's pid was given out. */
  readonly pidLap: number;
  /** An environment entry that only this command's processes inherit, `NAME=value`. */
  readonly marker: string;
  /**
   * When the leader had exited, in the ticks of `startTicks`; undefined while it runs. From then on its number is free once its
   * session is empty. Set once, by whoever saw the exit.
   */
  leaderGoneTicks?: number;
}

/** Looking at more pids than this one by one costs more than listing those there are. */
const directLooksMax = 32;

const pidLaps = new PidLaps();

/** What is known of a command whose leader was started just now. */
export function belongingOf(leader: number, marker: string): Belonging {
  return { leader, leaderStartTicks: startTicksOf(leader), pidLap: pidLaps.see(leader), marker };
}

/** Its leader has exited just now. */
export function leaderGone(command: Belonging): void {
  try {
    command.leaderGoneTicks = nowTicks();
  } catch {
    command.leaderGoneTicks = 0; // No descriptor to read the time by: the session alone proves nothing any more.
  }
}

/** 0 where it cannot be read: then the number alone proves nothing, and what is the program's is known by its marker. */
function startTicksOf(pid: number): number {
  try {
    return readProcess(pid)?.startTicks ?? 0;
  } catch {
    return 0; // The program runs: for want of a descriptor to look at it, it is not called unstarted.
  }
}

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
  return membersAmong(allPids(), command);
}

/**
 * The same at the cost of what was started since the leader, instead of a look at everything on the machine, which a command's end must
 * not cost: for what is told, not for what is confirmed. In a storm of forks that fail, pids can go round unseen.
 */
export function recentMembersOf(command: Belonging): Process[] {
  const last = lastPid();
  if (pidLaps.see(last) !== command.pidLap) return membersOf(command);
  const count = last - command.leader + 1;
  const pids =
    count <= directLooksMax
      ? Array.from({ length: count }, (_, at) => command.leader + at)
      : allPids().filter((pid) => pid >= command.leader && pid <= last);
  return membersAmong(pids, command);
}

function membersAmong(pids: readonly number[], command: Belonging): Process[] {
  const { leader, leaderStartTicks, leaderGoneTicks } = command;
  const candidates: Process[] = [];
  let reused = false;
  // A session's number is not given again while it has members. Without one from the leader's time, it may be a stranger's.
  let continued = leaderGoneTicks === undefined;
  for (const pid of pids) {
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

function allPids(): readonly number[] {
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
