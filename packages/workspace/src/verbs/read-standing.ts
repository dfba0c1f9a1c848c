import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { hasEnded } from "../binding/bindable.ts";
import type { WorkspaceDeps } from "../deps.ts";
import { findOwn } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Standing } from "../state/facts.ts";
import type { Handle } from "../state/handle.ts";

/** L6: where a re-read shows that the workspace stands after a start that failed. Where even that fails, what cannot be a lie. */
export async function readStanding(ws: Handle, why: string): Promise<Standing> {
  const seen = await lookWhere(ws, why);
  if (seen.t === "gone" || seen.t === "deleting") return seen;
  // L1, L34: a stop of ours may still land, whatever is seen before it does.
  if (ws.unresolved.delete) return { t: "deleting" };
  return seen.t === "unbound" && ws.unresolved.suspend ? { t: "suspending", leaving: undefined } : seen;
}

async function lookWhere(ws: Handle, why: string): Promise<Standing> {
  using reads = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  try {
    const found = await findOwn(ws, reads);
    if (found.t === "absent") return { t: "gone", why: "absent" };
    if (found.t === "another") return { t: "gone", why: "replaced" };
    const { sandbox } = found;
    if (sandbox.deleting) return { t: "deleting" };
    if (sandbox.mode === "Running") return { t: "unbound", lost: undefined, why };
    const pods = await ws.deps.cluster.readPods(sandbox, reads);
    if (!(await isSeenStopped(ws.deps, sandbox, pods, reads))) return { t: "suspending", leaving: undefined };
    ws.confirm(sandbox);
    return { t: "suspended" };
  } catch (error) {
    ws.deps.log.warn(
      { workspaceId: ws.id, error },
      "where the workspace stands could not be read after a failed start",
    );
    return { t: "unbound", lost: undefined, why: `${why}; where it stands could not be read` };
  }
}

/** L25, by one look: as below, and nobody has woken it since the object was read, which would make its pods another time's. */
export async function isSeenStopped(
  { cluster }: Pick<WorkspaceDeps, "cluster">,
  sandbox: SandboxReading,
  pods: readonly PodReading[],
  within: Deadline,
): Promise<boolean> {
  if (!isStopped(sandbox, pods)) return false;
  const last = await cluster.readSandbox(sandbox.name, within);
  return last?.uid === sandbox.uid && last.generation === sandbox.generation;
}

/** L25, from one uncached look: no pod of this owner lives, and the controller has seen the suspend. */
export function isStopped(sandbox: SandboxReading, pods: readonly PodReading[]): boolean {
  return (
    sandbox.mode === "Suspended" &&
    sandbox.observedGeneration >= sandbox.generation &&
    pods.every((pod) => hasEnded(pod))
  );
}
