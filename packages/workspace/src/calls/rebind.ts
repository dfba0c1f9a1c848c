import { Deadline } from "@holdfast/async";
import { bindablePodWaitMs, clusterRequestTimeoutMs, type PodUid } from "@holdfast/contract";
import type { HoldfastError } from "@holdfast/errors";
import { agentHostOf } from "../binding/agent-host.ts";
import { bindableOf, endedByItself, endedWords } from "../binding/bindable.ts";
import { findGuest, type GuestSearch } from "../binding/find-guest.ts";
import { notUsableYet } from "../binding/start-problem.ts";
import { type Found, findOwn } from "../fence/gate.ts";
import {
  admissionRefusal,
  workspaceDeleting,
  workspaceNotReady,
  workspaceReplaced,
  workspaceSuspended,
} from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { Rebind } from "../state/rebind.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { observeForeignSuspend } from "./foreign-suspend.ts";

/**
 * After a guest was not reached: one look, shared by every call that needs it, on the service's own time (L39). It never takes a call's
 * cancellation, patches nothing, and tells what it finds as news.
 */
export function rebind(ws: Handle, lost: BoundGuest): Promise<Rebind> {
  return ws.rebinding.run(lost.pod.uid, () => lookAgain(ws, lost));
}

/** For a call on an unbound workspace: waits for a bindable pod, at most 10 s. */
export function bindUnbound(ws: Handle, lost: PodUid | undefined): Promise<Rebind> {
  return ws.rebinding.run(lost ?? "unbound", () => awaitUsable(ws, lost));
}

async function lookAgain(ws: Handle, { pod: { uid: lost }, guest }: BoundGuest): Promise<Rebind> {
  using reads = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  try {
    const found = await findOwn(ws, reads);
    if (found.t !== "ours") return vanished(ws, lost, found);
    if (found.sandbox.deleting) return deleting(ws, lost);
    if (found.sandbox.mode === "Suspended") return suspended(ws, lost);
    const pods = await ws.deps.cluster.readPods(found.sandbox, reads);
    const bindable = bindableOf(pods, ws.left);
    // A pod keeps its uid and not its address: its node may be started anew.
    const host = bindable && agentHostOf(ws, found.sandbox, bindable);
    if (bindable?.uid === lost && host === guest.address.host) return { t: "same" };
    const ended = endedByItself(pods);
    ws.observe({
      t: "guestLost",
      was: lost,
      why: ended ? endedWords(ended) : "its pod is not ready, has another address, or is being replaced",
    });
  } catch (error) {
    ws.deps.log.info({ workspaceId: ws.id, error }, "where an unreachable guest went could not be read");
    return { t: "same" };
  }
  return await awaitUsable(ws, lost);
}

async function awaitUsable(ws: Handle, lost: PodUid | undefined): Promise<Rebind> {
  using within = new Deadline(ws.deps.clock, bindablePodWaitMs);
  const search = await findGuest(ws, within);
  switch (search.t) {
    case "bound":
      return takeOn(ws, lost, search);
    case "absent":
    case "another":
      return vanished(ws, lost, search);
    case "deleting":
      return deleting(ws, lost);
    case "suspended":
      return suspended(ws, lost);
    case "ended":
      return unusable(ws, lost, workspaceNotReady(ws, endedWords(search.pod)));
    case "timeout":
      return unusable(ws, lost, notUsableYet(ws, search.look));
  }
}

function takeOn(
  ws: Handle,
  lost: PodUid | undefined,
  { bound, sandbox, claimUids }: Extract<GuestSearch, { readonly t: "bound" }>,
): Rebind {
  if (ws.observe({ t: "guestMoved", was: lost, bound })) {
    if (!ws.inTransition) ws.confirm(sandbox);
    ws.claimUids = claimUids;
    // A suspend that is about to be written holds it now, and may yet be taken back: no call is sent to it meanwhile.
    if (ws.state.t !== "active") return { t: "refused", error: admissionRefusal(ws) };
    return { t: "moved", bound };
  }
  // A transition went ahead meanwhile: what it says counts.
  bound.guest.close();
  if (ws.state.t === "active") return { t: "moved", bound: ws.state.bound };
  return { t: "refused", error: admissionRefusal(ws) };
}

function unusable(ws: Handle, lost: PodUid | undefined, error: HoldfastError): Rebind {
  ws.observe({ t: "guestLost", was: lost, why: error.metadata.why ?? error.message });
  return { t: "refused", error };
}

function vanished(ws: Handle, lost: PodUid | undefined, found: Exclude<Found, { readonly t: "ours" }>): Rebind {
  const replaced = found.t === "another";
  ws.observe({ t: "vanished", was: lost, why: replaced ? "replaced" : "absent" });
  const expected = replaced ? found.expected : (ws.known?.sandboxUid ?? "");
  return { t: "refused", error: workspaceReplaced(ws, expected, replaced ? found.sandbox : undefined) };
}

function deleting(ws: Handle, lost: PodUid | undefined): Rebind {
  ws.observe({ t: "deletionSeen", was: lost });
  return { t: "refused", error: workspaceDeleting(ws) };
}

function suspended(ws: Handle, lost: PodUid | undefined): Rebind {
  observeForeignSuspend(ws, lost);
  return { t: "refused", error: workspaceSuspended(ws, "TRANSPORT") };
}
