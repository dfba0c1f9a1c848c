import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { isGone, type Process, readProcess } from "../execution/processes.ts";

/** Finds the processes that a quiesce is about. */
export interface ProcessScope {
  readonly kind: "pid-namespace" | "owned-sessions";
  /** Those that live at the moment. Throws where that cannot be known, as without free descriptors. */
  members(): readonly Process[];
}

/** The kernel's number of the machine's own pid namespace. In it, PID 1 is not a pod's. */
export const machinesPidNamespace = "pid:[4026531836]";

/** Set by the local node for a pod that is a plain group of processes among others. (docs/design/local-node.md) */
export const sharedPodMark = "HOLDFAST_POD";

/**
 * The whole pod when this agent is PID 1 of the pod's own pid namespace, or its child; else what this agent has started, known by an
 * environment entry that all of it inherits. `helpers` are spared: processes of the agent's own, by pid. Decided once, at the start: later a child of PID 1 may merely have lost its parent.
 */
export function processScopeOf(marker: string, helpers: ReadonlySet<number>): ProcessScope {
  return seesWholePod() ? wholePod(helpers) : ownedScope(marker, helpers);
}

function seesWholePod(): boolean {
  if (process.pid !== 1 && process.ppid !== 1) return false;
  // A node without namespaces marks its pods so, and may itself be PID 1 of a container: what else runs there is not this pod's.
  if (process.env[sharedPodMark] !== undefined) return false;
  try {
    // A /proc of another namespace would name strangers by numbers that mean others here.
    const isOwnProc = readlinkSync("/proc/self") === String(process.pid);
    return isOwnProc && readlinkSync("/proc/self/ns/pid") !== machinesPidNamespace;
  } catch {
    return false; // What cannot be proved to be the pod alone is not taken for it.
  }
}

function wholePod(helpers: ReadonlySet<number>): ProcessScope {
  return { kind: "pid-namespace", members: () => others(helpers) };
}

/** Everything but PID 1, the agent, its helpers and what shares its kernel session. */
function others(helpers: ReadonlySet<number>): readonly Process[] {
  const session = readProcess(process.pid)?.session;
  const found: Process[] = [];
  for (const entry of readdirSync("/proc")) {
    const pid = Number(entry);
    if (!Number.isInteger(pid) || pid <= 1 || pid === process.pid || helpers.has(pid)) continue;
    const seen = readProcess(pid);
    if (seen !== undefined && !isGone(seen) && seen.session !== session) found.push(seen);
  }
  return found;
}

/** What carries the marker, what shares a kernel session with it, and what descends from either. */
export function ownedScope(marker: string, helpers: ReadonlySet<number>): ProcessScope {
  return {
    kind: "owned-sessions",
    members: () => {
      const candidates = others(helpers);
      const owned = new Map<number, Process>();
      const sessions = new Set<number>();
      const own = (found: Process): void => {
        owned.set(found.pid, found);
        // A session is inherited and cannot be joined: all in it come from the process that made it.
        sessions.add(found.session);
      };
      for (const found of candidates) if (found.parent === process.pid || hasEntry(found.pid, marker)) own(found);
      for (let before = -1; before !== owned.size; ) {
        before = owned.size;
        for (const found of candidates) if (owned.has(found.parent) || sessions.has(found.session)) own(found);
      }
      return [...owned.values()];
    },
  };
}

function hasEntry(pid: number, entry: string): boolean {
  try {
    const environment = readFileSync(`/proc/${pid}/environ`, "latin1");
    return environment.startsWith(`${entry}\0`) || environment.includes(`\0${entry}\0`);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES" || code === "EPERM") return false;
    throw error; // Without descriptors or memory to look, not found is not known.
  }
}
