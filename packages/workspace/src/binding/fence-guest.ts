import type { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { findOwn } from "../fence/gate.ts";
import { holderEpochOf, storedEpoch } from "../fence/holder-epoch.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Guest } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";

/** Says whether a call may be given the guest of what this reading shows; throws why not. */
export type Judge = (sandbox: SandboxReading) => void;

/** The object was written while its pod was being looked at: look again. */
export class StandingMoved extends Error {
  constructor() {
    super("the object moved while its pod was being looked at");
    this.name = "StandingMoved";
  }
}

/**
 * Reads the object again, after its pod was read: only so is the stored epoch that the guest is told not older than the pod (L17).
 * Throws StandingMoved where this pod may not be the one to bind any more.
 */
export async function readAfterPod(ws: Handle, before: SandboxReading, within: Deadline): Promise<SandboxReading> {
  using read = within.within(clusterRequestTimeoutMs);
  const found = await findOwn(ws, read);
  if (found.t !== "ours") throw new StandingMoved();
  const { sandbox } = found;
  if (sandbox.deleting || sandbox.mode !== before.mode || sandbox.generation !== before.generation) {
    throw new StandingMoved();
  }
  return sandbox;
}

/**
 * Tells the guest the stored epoch, and returns once nothing of a lower one can take effect in it (G5a). Nothing is sent where none is
 * stored: a guest that cannot be fenced serves a workspace that nobody fences. Throws GUEST_FEATURE_MISSING for one that cannot be.
 */
export async function fenceGuest(
  ws: Handle,
  guest: Guest,
  sandbox: SandboxReading,
  within: Deadline,
): Promise<HolderEpoch> {
  const stored = storedEpoch(sandbox);
  if (stored === 0) return stored;
  try {
    await guest.fence(stored, within);
    return stored;
  } catch (error) {
    if (!hasReason(error, "HOLDER_EPOCH_SUPERSEDED")) throw error;
    // Its word is believed only of what the object confirms: the workload could forge it.
    using read = within.within(clusterRequestTimeoutMs);
    const now = await findOwn(ws, read);
    const epoch = now.t === "ours" ? holderEpochOf(now.sandbox.stamps.holderEpoch) : "unreadable";
    if (epoch !== stored) throw new StandingMoved();
    throw guestAhead(ws, stored, error);
  }
}

/** Raises the epoch of the guest that is bound. The pod was read at its bind, so any reading that begins now is later. */
export async function fenceBound(
  ws: Handle,
  bound: BoundGuest,
  sandbox: SandboxReading,
  within: Deadline,
): Promise<void> {
  ws.noteFenced(bound, await fenceGuest(ws, bound.guest, sandbox, within));
}

/** The guest claims an epoch that was never stored, or is no longer. */
export function guestAhead(ws: Handle, stored: HolderEpoch, cause: unknown): HoldfastError {
  const says = cause instanceof HoldfastError ? (cause.metadata.stored ?? "") : "";
  return new HoldfastError("WORKSPACE_NOT_READY", {
    message: `The guest of workspace ${ws.id} stands at a holder epoch${says && ` (${says})`} that the object does not have (${stored}), so it refused, and it is not believed. Nothing was done. Suspend and resume the workspace to get a new guest; the disk is kept.`,
    metadata: { why: "guest_epoch_unconfirmed", stored: String(stored), guest: says },
    cause,
  });
}
