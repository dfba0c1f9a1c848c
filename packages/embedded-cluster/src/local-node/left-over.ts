import { readdir, readFile } from "node:fs/promises";
import type { Logger } from "pino";
import { sleep } from "./follow.ts";
import { numberOf, recordOf, textOf, textsOf } from "./json-shape.ts";
import type { NodePaths } from "./node-paths.ts";
import { endMarkedProcesses, killIfThere } from "./pod-processes.ts";
import { type ProcessIdentity, stillRuns } from "./process-identity.ts";

/** What was last started for a container: PID 1 of its namespace, or, without namespaces, the leader of its group. */
export interface LeftOver extends ProcessIdentity {
  readonly isGroup: boolean;
  /** Uids of the claims whose disks it may write to. */
  readonly disks: readonly string[];
}

/** What the ending of left-over processes stands on. */
export interface ProcessTools {
  readonly stillRuns: (process: ProcessIdentity) => Promise<boolean>;
  readonly kill: (pid: number) => void;
  readonly endMarked: (podUid: string, signal: AbortSignal) => Promise<boolean>;
}

const realProcesses: ProcessTools = { stillRuns, kill: killIfThere, endMarked: endMarkedProcesses };

/** How often a dying process is looked at again: only ever at the start of a node, and ever more rarely. */
const lookAgainMs = 20;
const lookAgainMaxMs = 2_000;

/** Reads what the records of a pod's containers name. They are this node's own; an unreadable one names nothing. */
export async function readLeftOvers(paths: NodePaths, podUid: string): Promise<readonly LeftOver[]> {
  const containers = await readdir(paths.containers(podUid)).catch(() => []); // none was ever started
  const records = containers.map((container) =>
    readFile(paths.processRecord(podUid, container), "utf8").catch(() => ""),
  );
  return (await Promise.all(records)).flatMap((record) => parseLeftOver(record) ?? []);
}

/**
 * Resolves with true when the process is gone, and with it everything of its container; with false when the signal
 * aborts first. It is expected to be dying; after `patienceMs` it is killed. One that even that does not end (it waits
 * in the kernel for a device) is waited for: nothing may run in its place.
 */
export async function endLeftOver(
  left: LeftOver,
  podUid: string,
  how: { readonly patienceMs: number; readonly signal: AbortSignal; readonly log: Logger },
  processes: ProcessTools = realProcesses,
): Promise<boolean> {
  const patience = Date.now() + how.patienceMs;
  let killed = false;
  let pauseMs = lookAgainMs;
  while (await processes.stillRuns(left)) {
    if (how.signal.aborted) return false;
    if (!killed && Date.now() >= patience) {
      killed = true;
      how.log.warn({ pid: left.pid }, "a pod of the node's earlier life still ran; it is killed");
      processes.kill(left.isGroup ? -left.pid : left.pid);
    }
    await sleep(pauseMs, how.signal);
    pauseMs = killed ? Math.min(lookAgainMaxMs, pauseMs * 1.5) : lookAgainMs;
  }
  return left.isGroup ? processes.endMarked(podUid, how.signal) : true;
}

export function parseLeftOver(record: string): LeftOver | undefined {
  try {
    const read = recordOf(JSON.parse(record));
    const [pid, startTicks, bootId] = [numberOf(read.pid, 0), textOf(read.startTicks), textOf(read.bootId)];
    if (!Number.isSafeInteger(pid) || pid <= 1 || startTicks === undefined || bootId === undefined) return undefined;
    return { pid, startTicks, bootId, isGroup: read.isGroup === true, disks: textsOf(read.disks) };
  } catch {
    return undefined;
  }
}
