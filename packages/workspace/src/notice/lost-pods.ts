import type { Deadline } from "@holdfast/async";
import type { PodUid } from "@holdfast/contract";
import { hasEnded } from "../binding/bindable.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";

/**
 * Reads the workspace's pods, and lets go of every guest whose pod is gone or has ended: those of its streams
 * that wait to reach it again end, and the others once they have delivered what it sent. A pod that is only on its way out is waited for:
 * its agent may still say how programs end.
 */
export async function readPodsAndEndGone(
  ws: Handle,
  sandbox: Pick<SandboxReading, "name" | "uid">,
  within: Deadline,
): Promise<readonly PodReading[]> {
  // As they were before the read: what is bound meanwhile may be in a pod that it does not show.
  const guests = ws.leases.inUse();
  const pods = await ws.deps.cluster.readPods(sandbox, within);
  for (const guest of guests) {
    const pod = pods.find(({ uid }) => uid === guest.address.podUid);
    if (pod === undefined || hasEnded(pod)) ws.leases.noteGone(guest);
  }
  return pods;
}

/** True while a stream waits in the guest of this pod, also where it was left. */
export function isFollowed(ws: Handle, pod: PodUid): boolean {
  return ws.leases.inUse().some(({ address }) => address.podUid === pod);
}
