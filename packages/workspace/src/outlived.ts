import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { findOwn } from "./fence/gate.ts";
import type { Handle } from "./state/handle.ts";
import { nothingRemains } from "./verbs/destroy.ts";

/**
 * L35: one uncached look whether what a `suspending`, `suspended` or `deleting` handle says has been overtaken by somebody else, or by the cluster.
 * Undefined: it could not be looked at.
 */
export async function isOutlived(ws: Handle): Promise<boolean | undefined> {
  using within = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  const isDeleting = ws.state.t === "deleting";
  try {
    const found = await findOwn(ws, within);
    if (found.t === "another") return true;
    if (found.t === "absent")
      return !(isDeleting && ws.deleteAsked) || (await nothingRemains(ws, ws.deleteAsked, within));
    if (isDeleting) return !found.sandbox.deleting;
    // Woken and suspended again since, another pod may stand.
    const isAnotherStop = ws.state.t === "suspended" && !ws.isUnchangedSinceConfirmed(found.sandbox);
    return found.sandbox.deleting || found.sandbox.mode === "Running" || isAnotherStop;
  } catch (error) {
    ws.deps.log.info({ workspaceId: ws.id, error }, "where the workspace stands could not be read again");
    return undefined;
  }
}
