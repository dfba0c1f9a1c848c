import { Deadline, DeadlineExceeded, orAborted } from "@holdfast/async";
import type { HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { bindAnswerMs } from "../binding/dial-guest.ts";
import { fenceBound, guestAhead, StandingMoved } from "../binding/fence-guest.ts";
import type { Found } from "../fence/gate.ts";
import { epochNotTaken, epochRequired, epochSuperseded, storedEpoch } from "../fence/holder-epoch.ts";
import { GuestLost, GuestNotReached } from "../ports/guest.ts";
import { workspaceDeleting, workspaceReplaced, workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { observeForeignSuspend } from "./foreign-suspend.ts";
import { lookAtOwn } from "./reread.ts";

/** How a call stands to the workspace's fence (L20): what changes something carries its caller's epoch, or none. */
export interface EpochClaim {
  readonly changes: boolean;
  readonly epoch: HolderEpoch | undefined;
}

/** What only reads needs no epoch, and carries none. */
export const readsOnly: EpochClaim = { changes: false, epoch: undefined };

const nothingDone = "Nothing was done";

/**
 * Before a call is sent: refuses what the guest, fenced as it is known to be, would refuse, once the object says so too: the fence that
 * is known may be of a workspace that is gone. An epoch above that is looked for on the object, and the guest is fenced with it (L22).
 */
export async function assertClaim(
  ws: Handle,
  bound: BoundGuest,
  { changes, epoch }: EpochClaim,
  signal: AbortSignal,
): Promise<void> {
  if (!changes) return;
  const { fenced } = bound;
  if (epoch !== undefined && !bound.features.includes("holder-epoch")) throw cannotFence(ws, bound);
  if ((epoch ?? 0) < fenced) assertNotFenced(ws, epoch, (await confirmed(ws, bound, signal)).epoch);
  if (epoch !== undefined && epoch > fenced) await takeOn(ws, bound, epoch, signal);
}

/** What the object has stored refuses the call. Where it does not, the guest has the word. */
function assertNotFenced(ws: Handle, epoch: HolderEpoch | undefined, stored: HolderEpoch): void {
  if (epoch === undefined && stored > 0) throw epochRequired(ws.name, stored, nothingDone);
  if (epoch !== undefined && stored > epoch) throw epochSuperseded(ws.name, epoch, stored, nothingDone);
}

/** True for an answer of the guest that is about epochs: it did nothing. */
export function isEpochRefusal(error: unknown): error is HoldfastError {
  return hasReason(error, "HOLDER_EPOCH_SUPERSEDED", "HOLDER_EPOCH_NOT_TAKEN", "HOLDER_EPOCH_REQUIRED");
}

/**
 * What a guest's refusal comes to. Its word is believed only of what the object, read after it, confirms: the workload could forge it.
 * Returns where the guest has been fenced with the call's epoch, so that the call may be made again; throws in every other case.
 */
export async function settleRefusal(
  ws: Handle,
  bound: BoundGuest,
  { epoch }: EpochClaim,
  refusal: HoldfastError,
  signal: AbortSignal,
): Promise<void> {
  if (epoch !== undefined && refusal.reason === "HOLDER_EPOCH_NOT_TAKEN") {
    await takeOn(ws, bound, epoch, signal);
    return;
  }
  const stored = await confirmed(ws, bound, signal);
  assertNotFenced(ws, epoch, stored.epoch);
  throw guestAhead(ws, stored.epoch, refusal);
}

/** Fences the guest where the object has the call's epoch, or a higher one. Resolves only where it is the call's. */
async function takeOn(ws: Handle, bound: BoundGuest, epoch: HolderEpoch, signal: AbortSignal): Promise<void> {
  const stored = await confirmed(ws, bound, signal);
  if (stored.epoch < epoch) throw epochNotTaken(ws.name, epoch, stored.epoch);
  await orAborted(fence(ws, bound, stored.sandbox), signal);
  if (stored.epoch > epoch) throw epochSuperseded(ws.name, epoch, stored.epoch, nothingDone);
}

/** The fence belongs to the service: a caller that goes away does not leave it half asked. */
async function fence(ws: Handle, bound: BoundGuest, sandbox: Confirmed["sandbox"]): Promise<void> {
  using within = new Deadline(ws.deps.clock, bindAnswerMs);
  try {
    await fenceBound(ws, bound, sandbox, within);
  } catch (error) {
    // Whatever became of the fence, nothing of the call was sent.
    if (error instanceof GuestLost || error instanceof DeadlineExceeded || error instanceof StandingMoved) {
      throw new GuestNotReached("no-connection", `its guest could not be fenced: ${error.message}`, error);
    }
    throw error;
  }
}

interface Confirmed {
  readonly sandbox: Extract<Found, { readonly t: "ours" }>["sandbox"];
  readonly epoch: HolderEpoch;
}

/** The stored epoch by an uncached read that begins after this call. What else it shows is told as news, and ends the call. */
async function confirmed(ws: Handle, bound: BoundGuest, signal: AbortSignal): Promise<Confirmed> {
  const found = await orAborted(
    ws.freshLook.run(() => lookAtOwn(ws)),
    signal,
  );
  const was = bound.pod.uid;
  if (found.t !== "ours") {
    const why = found.t === "another" ? "replaced" : "absent";
    ws.observe({ t: "vanished", was, why });
    throw workspaceReplaced(ws, ws.known?.sandboxUid ?? "", found.t === "another" ? found.sandbox : undefined);
  }
  const { sandbox } = found;
  if (sandbox.deleting) {
    ws.observe({ t: "deletionSeen", was });
    throw workspaceDeleting(ws);
  }
  if (sandbox.mode === "Suspended") {
    observeForeignSuspend(ws, was);
    throw workspaceSuspended(ws, "ADMISSION");
  }
  return { sandbox, epoch: storedEpoch(sandbox) };
}

/** A call that carries an epoch is never served in a weaker form. */
function cannotFence(ws: Handle, { features }: BoundGuest): HoldfastError {
  return new HoldfastError("GUEST_FEATURE_MISSING", {
    message: `The guest of workspace ${ws.id} does not keep holder epochs, and this call carries one. Nothing was sent to it. The workspace needs an image with a newer agent; calls without an epoch are served while nobody fences it.`,
    metadata: { feature: "holder-epoch", announced: features.join(",") },
  });
}
