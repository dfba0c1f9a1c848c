import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, guestHealthTimeoutMs } from "@holdfast/contract";
import { endedWords, hasEnded } from "../binding/bindable.ts";
import { observeForeignSuspend } from "../calls/foreign-suspend.ts";
import { findOwn } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import { type Handle, heldPodOf } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { isSeenStopped } from "../verbs/read-standing.ts";
import { readPodsAndEndGone } from "./lost-pods.ts";

/**
 * What a handle does about news, and about a guest that its streams cannot reach (L35, L37): one uncached look on the service's own time,
 * and what that shows is observed. It writes nothing and takes no workspace back; one that fails shows nothing. False: it failed, or
 * came too late to tell. Never rejects.
 */
export async function lookAgain(ws: Handle): Promise<boolean> {
  const was = heldPodOf(ws.state);
  const since = ws.transition;
  using within = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  try {
    const found = await findOwn(ws, within);
    if (found.t === "another") ws.observe({ t: "vanished", was, why: "replaced" });
    // Of a delete that was asked for here, pods and claims may still stand: whoever asks for it again looks for them.
    else if (found.t === "absent" && !ws.deleteAsked) ws.observe({ t: "vanished", was, why: "absent" });
    if (found.t !== "ours") return true;
    const { sandbox } = found;
    if (sandbox.deleting) ws.observe({ t: "deletionSeen", was });
    // Unlike an end, a suspend may be over by now: where the handle has moved since, a resume may be what moved it.
    else if (sandbox.mode === "Suspended" && ws.transition !== since) return false;
    else if (sandbox.mode === "Suspended") await lookAtStop(ws, sandbox, within);
    else if (ws.state.t === "active") await lookAtPod(ws, sandbox, ws.state.bound, within);
    else if (ws.leases.inUse().length > 0) await readPodsAndEndGone(ws, sandbox, within);
    return true;
  } catch (error) {
    ws.deps.log.info({ workspaceId: ws.id, error }, "what became of the workspace could not be looked at");
    return false;
  }
}

/** Somebody's suspend. It is confirmed only where no write of ours may still land, and no recipe runs that confirms it itself (L25). */
async function lookAtStop(ws: Handle, sandbox: SandboxReading, within: Deadline): Promise<void> {
  observeForeignSuspend(ws, heldPodOf(ws.state));
  if (ws.state.t !== "suspending") return;
  const since = ws.transition;
  const pods = await readPodsAndEndGone(ws, sandbox, within);
  const stopped = await isSeenStopped(ws.deps, sandbox, pods, within);
  if (!stopped || ws.transition !== since || ws.inTransition || ws.unresolved.any) return;
  ws.confirm(sandbox);
  ws.commit({ t: "podGone" });
}

/** A pod that ended, goes or went is nobody's to call any more; the next is bound when somebody calls (L39). */
async function lookAtPod(ws: Handle, sandbox: SandboxReading, bound: BoundGuest, within: Deadline): Promise<void> {
  const pods = await readPodsAndEndGone(ws, sandbox, within);
  const pod = pods.find(({ uid }) => uid === bound.pod.uid);
  const why = lossOf(pod);
  if (why !== undefined) ws.observe({ t: "guestLost", was: bound.pod.uid, why });
  else if (pod?.ready && pod.restartCount > bound.pod.restartCount) await askWhoItIs(ws, bound);
}

function lossOf(pod: PodReading | undefined): string | undefined {
  if (!pod) return "its pod is gone";
  if (hasEnded(pod)) return endedWords(pod);
  return pod.deleting ? "its pod is being replaced" : undefined;
}

/** The container restarted: its agent names another boot id by now (L41). */
async function askWhoItIs(ws: Handle, bound: BoundGuest): Promise<void> {
  using within = new Deadline(ws.deps.clock, guestHealthTimeoutMs);
  const { bootId } = await bound.guest.health(within);
  ws.noteBootId(bound, bootId);
}
