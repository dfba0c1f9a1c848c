import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { type Found, findOwn } from "../fence/gate.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { observeForeignSuspend } from "./foreign-suspend.ts";

/**
 * One uncached look at the object, with its own deadline, shared by those who need it together. What it finds is told as news about
 * this guest; it never fails. (L35, L36)
 */
export async function reread(ws: Handle, bound: BoundGuest): Promise<void> {
  await ws.rereading.run(bound.pod.uid, async () => void (await takeIn(ws, bound, () => lookAtOwn(ws))));
}

/** As reread, by a look that begins after this call. False: it could not be looked at. */
export async function rereadAfresh(ws: Handle, bound: BoundGuest): Promise<boolean> {
  return await takeIn(ws, bound, () => ws.freshLook.run(() => lookAtOwn(ws)));
}

/** One uncached look, on the service's own time. */
export async function lookAtOwn(ws: Handle): Promise<Found> {
  using within = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  return await findOwn(ws, within);
}

async function takeIn(ws: Handle, bound: BoundGuest, look: () => Promise<Found>): Promise<boolean> {
  const was = bound.pod.uid;
  try {
    const found = await look();
    if (found.t === "absent") ws.observe({ t: "vanished", was, why: "absent" });
    else if (found.t === "another") ws.observe({ t: "vanished", was, why: "replaced" });
    else if (found.sandbox.deleting) ws.observe({ t: "deletionSeen", was });
    else if (found.sandbox.mode === "Suspended") observeForeignSuspend(ws, was);
    return true;
  } catch (error) {
    ws.deps.log.info({ workspaceId: ws.id, error }, "the object could not be read again");
    return false;
  }
}

/** True while this guest is the one that the workspace runs in. */
export function holds(ws: Handle, bound: BoundGuest): boolean {
  return ws.state.t === "active" && ws.state.bound.pod.uid === bound.pod.uid;
}
