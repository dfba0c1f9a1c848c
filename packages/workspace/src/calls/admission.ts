import { orAborted } from "@holdfast/async";
import { admissionRefusal, workspaceNotReady } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { bindUnbound } from "./rebind.ts";

/** The guest for a data-plane call. Refused up front: nothing was dialled. One that runs without a bound pod is waited for, briefly. */
export async function admit(ws: Handle, signal: AbortSignal): Promise<BoundGuest> {
  const { state } = ws;
  if (state.t === "active") return state.bound;
  if (mayBeWoken(ws)) throw workspaceNotReady(ws, "another call is at work on it");
  if (state.t !== "unbound") throw admissionRefusal(ws);
  const outcome = await orAborted(bindUnbound(ws, state.lost), signal);
  if (outcome.t === "moved") return outcome.bound;
  throw outcome.t === "refused" ? outcome.error : workspaceNotReady(ws, state.why);
}

/** L35: somebody may have woken, or made anew, what it says is stopped or deleted; the start, or whatever else is at work on it, sees that first. */
function mayBeWoken({ state, startsUnderWay, inTransition }: Handle): boolean {
  if (state.t === "suspending" || state.t === "deleting") return startsUnderWay > 0;
  return state.t === "suspended" && (startsUnderWay > 0 || inTransition);
}
