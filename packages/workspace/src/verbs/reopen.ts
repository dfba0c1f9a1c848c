import { type Deadline, DeadlineExceeded } from "@holdfast/async";
import { hasReason } from "@holdfast/errors";
import { bindableOf } from "../binding/bindable.ts";
import { bindAnswerMs } from "../binding/dial-guest.ts";
import { fenceBound, readAfterPod, StandingMoved } from "../binding/fence-guest.ts";
import { holds } from "../calls/reread.ts";
import { storedEpoch } from "../fence/holder-epoch.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { viewOf } from "../view.ts";
import type { Origin } from "../wishes.ts";
import { assertStillHeld, type StartAttempt } from "./start-attempt.ts";
import { wake } from "./wake.ts";

/** `kept`: its guest stays. Otherwise the workspace was asked to run, with this origin, and its guest must be looked for. */
export type Reopened = { readonly kept: true } | { readonly kept: false; readonly origin: Origin };

/** L15, L42: a pod that ended, went, or is not ready is no guest to keep: a start answers once its guest is reached. */
async function isBindableStill(
  ws: Handle,
  standing: SandboxReading,
  bound: BoundGuest,
  within: Deadline,
): Promise<boolean> {
  const pods = await ws.deps.cluster.readPods(standing, within);
  return bindableOf(pods, ws.left)?.uid === bound.pod.uid;
}

/**
 * A start on a workspace that is open here and untouched since (L5); undefined on any other. Its guest stays, fenced with the call's
 * epoch once that is stored: nobody's call is ended for it.
 */
export async function reopen(
  ws: Handle,
  standing: SandboxReading,
  attempt: StartAttempt,
  template: string | undefined,
  within: Deadline,
): Promise<Reopened | undefined> {
  const { state } = ws;
  if (state.t !== "active" || !ws.stillConfirmed(standing)) return undefined;
  const { bound } = state;
  const origin = await wake(ws, standing, attempt, template, within); // Writes only what is not stored yet.
  if (origin === "resumed") return { kept: false, origin };
  if (!(await isBindableStill(ws, standing, bound, within))) return { kept: false, origin };
  // News of another pod, or of a suspend, may come at any time.
  const keep = (): Reopened => {
    if (!holds(ws, bound)) return { kept: false, origin };
    ws.startedAs = viewOf(ws);
    return { kept: true };
  };
  if (attempt.marks.length === 0 && bound.fenced === storedEpoch(standing)) return keep();
  using answer = within.within(bindAnswerMs);
  try {
    const now = await readAfterPod(ws, standing, within);
    assertStillHeld(attempt, now);
    await fenceBound(ws, bound, now, answer);
    ws.confirm(now);
  } catch (error) {
    const mustLook =
      error instanceof StandingMoved ||
      error instanceof GuestNotReached ||
      error instanceof GuestLost ||
      (error instanceof DeadlineExceeded && answer.expired && !within.signal.aborted) ||
      hasReason(error, "AGENT_RETIRING", "AGENT_UNREACHABLE");
    if (!mustLook) throw error;
    return { kept: false, origin };
  }
  return keep();
}
