import { Deadline, orAborted } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { holds, reread } from "../calls/reread.ts";
import type { PodReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { type PodFacts, podFactsOf } from "../view.ts";

/**
 * The facts of the bound pod by an uncached read; undefined when none is bound, or it cannot be read, or is not there. A pod that is
 * gone or going is looked into: what that shows is told as news, so that a view does not call running what is not.
 */
export async function podFactsNow(ws: Handle, caller: AbortSignal): Promise<PodFacts | undefined> {
  const { state } = ws;
  if (state.t !== "active") return undefined;
  const { bound } = state;
  const pods = await readPods(ws, caller);
  if (!pods) return undefined;
  const pod = pods.find(({ uid }) => uid === bound.pod.uid);
  if (pod && !pod.deleting) return podFactsOf(pod);
  if (holds(ws, bound)) await orAborted(reread(ws, bound), caller);
  if (!pod) ws.observe({ t: "guestLost", was: bound.pod.uid, why: `its pod ${bound.pod.name} is gone` });
  return pod && podFactsOf(pod);
}

async function readPods(ws: Handle, caller: AbortSignal): Promise<readonly PodReading[] | undefined> {
  if (!ws.known) return undefined;
  using within = new Deadline(ws.deps.clock, clusterRequestTimeoutMs, caller);
  try {
    return await ws.deps.cluster.readPods({ name: ws.name, uid: ws.known.sandboxUid }, within);
  } catch (error) {
    caller.throwIfAborted();
    ws.deps.log.info({ workspaceId: ws.id, error }, "the pod could not be read for a view");
    return undefined;
  }
}
