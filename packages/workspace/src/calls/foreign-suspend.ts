import { Deadline } from "@holdfast/async";
import { type PodUid, sessionReleaseTimeoutMs } from "@holdfast/contract";
import type { Guest } from "../ports/guest.ts";
import { workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { boundGuestOf } from "../state/transitions.ts";

/**
 * L35: somebody else suspended the workspace. This service's terminals are released without waiting for it: their programs end with the
 * pod, and their callers hear why instead of a broken link.
 */
export function observeForeignSuspend(ws: Handle, was: PodUid | undefined): void {
  const bound = boundGuestOf(ws.state);
  if (!ws.observe({ t: "suspendedElsewhere", was })) return;
  if (bound?.features.includes("sessions")) void releaseUnwaited(ws, bound.guest);
}

async function releaseUnwaited(ws: Handle, guest: Guest): Promise<void> {
  using within = new Deadline(ws.deps.clock, sessionReleaseTimeoutMs);
  try {
    await guest.releaseSessions(workspaceSuspended(ws, "RELEASED"), within);
  } catch (error) {
    ws.deps.log.info(
      { workspaceId: ws.id, error },
      "the guest of a workspace that somebody suspended released no terminals",
    );
  }
}
