import { HoldfastError } from "@holdfast/errors";
import type { GuestIdentity } from "../events/workspace-event.ts";
import type { Handle } from "../state/handle.ts";

/**
 * The pod in which `what` ran was seen gone, or ended, and how `what` ended was not heard. A pod that was deleted by force is gone from the
 * cluster while its node may not have ended it: nothing is claimed of that.
 */
export function guestGone(
  ws: Handle,
  { podUid, bootId }: GuestIdentity,
  what: string,
  metadata: Readonly<Record<string, string>>,
  cause: Error,
): HoldfastError {
  return new HoldfastError("GUEST_GONE", {
    message: `The pod of workspace ${ws.id} in which ${what} ran is gone (${podUid}). Programs go with their pod, unless it was deleted by force on a node that cannot be reached. How it ended is not known, and what it wrote since was not delivered. The disk is kept. Look at what it did before you run it again.`,
    metadata: { ...metadata, evidence: "pod_gone", previous_pod: podUid, previous_boot_id: bootId ?? "" },
    cause,
  });
}
