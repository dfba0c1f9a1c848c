import { HoldfastError } from "@holdfast/errors";
import type { GuestIdentity } from "../events/workspace-event.ts";
import type { Handle } from "../state/handle.ts";

/** The pod in which `what` ran was seen gone, or ended: nothing of it runs any more, and how it ended was not heard. */
export function guestGone(
  ws: Handle,
  { podUid, bootId }: GuestIdentity,
  what: string,
  metadata: Readonly<Record<string, string>>,
  cause: Error,
): HoldfastError {
  return new HoldfastError("GUEST_GONE", {
    message: `The pod of workspace ${ws.id} in which ${what} ran is gone (${podUid}), and with it its programs. How it ended is not known, and what it wrote since was not delivered. The disk is kept. Look at what it did before you run it again.`,
    metadata: { ...metadata, evidence: "pod_gone", previous_pod: podUid, previous_boot_id: bootId ?? "" },
    cause,
  });
}
