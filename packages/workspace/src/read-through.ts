import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, sandboxNameOf, type WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { bindableOf, endedByItself, endedWords } from "./binding/bindable.ts";
import type { WorkspaceDeps } from "./deps.ts";
import { holderEpochOf } from "./fence/holder-epoch.ts";
import type { PodReading, SandboxReading } from "./ports/cluster.ts";
import { LiveCalls } from "./state/live-calls.ts";
import { isSeenStopped } from "./verbs/read-standing.ts";
import { podFactsOf, type WireState, type WorkspaceView } from "./view.ts";

const nothingLeft: ReadonlySet<never> = new Set();

/**
 * Reads a workspace that is not open here: no handle is made, no guest is dialled. Throws WORKSPACE_NOT_FOUND. `live`: what this process
 * holds open all the same, as through a handle that was let go.
 */
export async function readThrough(
  deps: Pick<WorkspaceDeps, "clock" | "cluster">,
  id: WorkspaceId,
  caller: AbortSignal,
  live = new LiveCalls(),
): Promise<WorkspaceView> {
  using within = new Deadline(deps.clock, 2 * clusterRequestTimeoutMs, caller);
  const name = sandboxNameOf(id);
  const sandbox = await deps.cluster.readSandbox(name, within);
  if (!sandbox) {
    throw new HoldfastError("WORKSPACE_NOT_FOUND", {
      message: `Workspace ${id} does not exist. Open it to create it.`,
      metadata: { workspace_id: id, sandbox: name },
    });
  }
  const pods = await deps.cluster.readPods(sandbox, within);
  const { uids: claimUids } = await deps.cluster.readClaims(sandbox, within);
  const pod = bindableOf(pods, nothingLeft);
  const stopped = await isSeenStopped(deps, sandbox, pods, within);
  const { state, waitingFor } = standingOf(sandbox, pods, stopped);
  const runs = state === "running" ? pod : undefined;
  const epoch = holderEpochOf(sandbox.stamps.holderEpoch);
  return {
    id,
    state,
    transition: { cause: "read", waitingFor },
    identity: { sandboxUid: sandbox.uid, claimUids, podUid: runs?.uid },
    template: sandbox.template,
    templateRevision: sandbox.stamps.podTemplateHash,
    templateCurrent: false,
    holderEpoch: epoch === "unreadable" ? undefined : epoch,
    root: sandbox.disk.usable ? sandbox.disk.root : undefined,
    pod: runs && podFactsOf(runs),
    live: live.of(id),
  };
}

function standingOf(
  sandbox: SandboxReading,
  pods: readonly PodReading[],
  stopped: boolean,
): { readonly state: WireState; readonly waitingFor?: string } {
  if (sandbox.deleting) return { state: "deleting", waitingFor: "the object, its pod and its disk to be gone" };
  if (sandbox.mode === "Suspended") {
    if (stopped) return { state: "suspended" };
    return { state: "suspending", waitingFor: "the pod to be gone" };
  }
  if (bindableOf(pods, nothingLeft)) return { state: "running" };
  const ended = endedByItself(pods);
  if (ended) return { state: "not_ready", waitingFor: endedWords(ended) };
  const problem = pods.find((pod) => pod.problem !== undefined)?.problem;
  return { state: "starting", waitingFor: problem ?? "a pod that is ready" };
}
