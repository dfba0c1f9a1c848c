import { HoldfastError } from "@holdfast/errors";
import { GuestNotReached } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";

/** The setting that says where guests are dialled. */
const addressSetting = "--agent-address";

/** The error that a caller gets for a guest that was not reached: nothing was sent to it. `host`: where it was dialled. */
export function notReached(ws: Handle, failure: GuestNotReached, host?: string): HoldfastError {
  const init = { metadata: { why: failure.why }, cause: failure };
  const nothing = `Nothing was sent to the guest of workspace ${ws.id}`;
  switch (failure.why) {
    case "no-connection":
      return new HoldfastError("AGENT_UNREACHABLE", {
        ...init,
        message: `${nothing}: its agent could not be connected to (${failure.message}). Try again; check the network between service and pod if it lasts.`,
      });
    case "token-refused":
      return new HoldfastError("GUEST_TOKEN_REFUSED", {
        ...init,
        message: `${nothing}: its agent refused the pod's uid as the token, though the pod is the same. Suspend and resume the workspace to get a new agent; the disk is kept.`,
      });
    case "protocol-mismatch":
      return new HoldfastError("GUEST_PROTOCOL_MISMATCH", {
        ...init,
        message: `${nothing}: its agent speaks another protocol (${failure.message}). The workspace was left as it is; it needs an image with a matching agent.`,
      });
    case "name-unresolvable":
      return new HoldfastError("AGENT_ADDRESS_UNRESOLVABLE", {
        cause: failure,
        metadata: { why: failure.why, host: host ?? "", setting: addressSetting },
        message: `${nothing}: its agent's name ${host ?? ""} does not resolve (${failure.message}). Run the service where the cluster's names resolve, or with ${addressSetting} pod-ip.`,
      });
    case "retiring":
      return new HoldfastError("AGENT_RETIRING", {
        ...init,
        message: `${nothing}: its agent is stopping and takes no new work. Suspend and resume the workspace, or wait for its next pod; the disk is kept.`,
      });
  }
}

/** A guest's failure as callers may see it. */
export function presentable(ws: Handle, error: unknown, host?: string): unknown {
  return error instanceof GuestNotReached ? notReached(ws, error, host) : error;
}
