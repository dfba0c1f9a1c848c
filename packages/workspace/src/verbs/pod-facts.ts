import { Deadline, orAborted } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { endedWords, hasEnded } from "../binding/bindable.ts";
import { holds, reread } from "../calls/reread.ts";
import type { PodReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import { type PodFacts, podFactsOf } from "../view.ts";

/**
 * The facts of the bound pod by an uncached read; undefined when none is bound, or it cannot be read, or is not there. A pod that is
 * gone, going or ended is looked into: what that shows is told as news, so that a view does not call running what is not.
 */
export async function podFactsNow(ws: Handle, caller: AbortSignal): Promise<PodFacts | undefined> {
  const { state } = ws;
  if (state.t !== "active") return undefined;
  const { bound } = state;
  const pods = await readPods(ws, caller);
  if (!pods) return undefined;
  const pod = pods.find(({ uid }) => uid === bound.pod.uid);
  if (pod && !pod.deleting && !hasEnded(pod)) return podFactsOf(pod);
  if (holds(ws, bound)) await orAborted(reread(ws, bound), caller);
  const why = lostWords(bound.pod, pod);
  if (why !== undefined) ws.observe({ t: "guestLost", was: bound.pod.uid, why });
  return pod && podFactsOf(pod);
}

/** Why a pod is no guest any more; undefined for one that is on its way out, whose end the object explains. */
function lostWords(bound: PodReading, now: PodReading | undefined): string | undefined {
  if (!now) return `its pod ${bound.name} is gone`;
  return hasEnded(now) && !now.deleting ? endedWords(now) : undefined;
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
