import type { Logger } from "pino";
import { numberOf, recordOf, textOf } from "./json-shape.ts";
import { endMarkedProcesses, killIfThere } from "./pod-processes.ts";
import { type ProcessIdentity, stillRuns } from "./process-identity.ts";

/** What a pod's process record names: PID 1 of the pod, or, without namespaces, the leader of its process group. */
interface LeftOver extends ProcessIdentity {
  readonly isGroup: boolean;
}

/** How often a dying process is looked at again. Only ever at the start of a node, for what its earlier life left. */
const lookAgainMs = 20;

/**
 * Resolves when the process that a record of the pod names is gone, and with it everything of the pod. It is expected to be dying; after `patienceMs` it is killed.
 * The record was written by this node (beforeStart); an unreadable one names nothing.
 */
export async function endLeftOver(record: string, podUid: string, patienceMs: number, log: Logger): Promise<void> {
  const left = parseIdentity(record);
  if (left === undefined) return;
  const patience = Date.now() + patienceMs;
  let killed = false;
  while (await stillRuns(left)) {
    if (!killed && Date.now() > patience) {
      killed = true;
      log.warn({ pid: left.pid }, "a pod of the node's earlier life still ran; it is killed");
      killIfThere(left.isGroup ? -left.pid : left.pid);
    }
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
  if (left.isGroup) await endMarkedProcesses(podUid);
}

function parseIdentity(record: string): LeftOver | undefined {
  try {
    const read = recordOf(JSON.parse(record));
    const [pid, startTicks, bootId] = [numberOf(read.pid, 0), textOf(read.startTicks), textOf(read.bootId)];
    if (!Number.isSafeInteger(pid) || pid <= 1 || startTicks === undefined || bootId === undefined) return undefined;
    return { pid, startTicks, bootId, isGroup: read.isGroup === true };
  } catch {
    return undefined;
  }
}
