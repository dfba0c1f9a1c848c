import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import type { Handle } from "../state/handle.ts";
import { type PodFacts, podFactsOf } from "../view.ts";

/** The facts of the bound pod by an uncached read; undefined when none is bound, or it cannot be read, or is not there. */
export async function podFactsNow(ws: Handle, caller: AbortSignal): Promise<PodFacts | undefined> {
  const { state, known } = ws;
  if (state.t !== "active" || !known) return undefined;
  const { uid } = state.bound.pod;
  using within = new Deadline(ws.deps.clock, clusterRequestTimeoutMs, caller);
  try {
    const pods = await ws.deps.cluster.readPods({ name: ws.name, uid: known.sandboxUid }, within);
    const pod = pods.find((candidate) => candidate.uid === uid);
    return pod && podFactsOf(pod);
  } catch (error) {
    caller.throwIfAborted();
    ws.deps.log.info({ workspaceId: ws.id, error }, "the pod could not be read for a view");
    return undefined;
  }
}
