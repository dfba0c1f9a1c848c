import { orAborted } from "@holdfast/async";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { presentable } from "../binding/guest-failure.ts";
import { type ExecutionEvent, type ExecutionWish, GuestLost, GuestNotReached } from "../ports/guest.ts";
import { admissionRefusal, workspaceDeleting, workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { admit } from "./admission.ts";
import { rebind } from "./rebind.ts";
import { holds, reread } from "./reread.ts";

/**
 * Runs a command in the bound guest. Where nothing of it can have run (GuestNotReached, before the first event) it moves to another
 * guest, once (L39). A failure of the transport is followed by at most one re-read (L36).
 */
export async function* execute(ws: Handle, wish: ExecutionWish, signal: AbortSignal): AsyncGenerator<ExecutionEvent> {
  signal.throwIfAborted();
  let bound = await admit(ws, signal);
  let mayRebind = true;
  let mayReread = true;
  let begun = false;
  let nextOffset = 0;
  for (;;) {
    const giveBack = ws.leases.take(bound.guest);
    try {
      for await (const event of bound.guest.execute(wish, signal)) {
        begun = true;
        if (event.t === "started") ws.noteBootId(bound, event.bootId);
        if (event.t === "output") nextOffset = event.offset + event.data.length;
        if (event.t === "gap") nextOffset = event.to;
        yield event;
      }
      return;
    } catch (error) {
      if (signal.aborted) throw error;
      if (begun || !mayRebind || !(error instanceof GuestNotReached) || error.why === "name-unresolvable") {
        throw await explained(ws, bound, error, { wish, begun, nextOffset, mayReread });
      }
      bound = await otherGuest(ws, bound, error, signal);
      mayRebind = false;
      mayReread = false;
    } finally {
      giveBack();
    }
  }
}

/** The guest to try instead. A refusal that lands after another call's rebind is retried there without a read. */
async function otherGuest(
  ws: Handle,
  lost: BoundGuest,
  failure: GuestNotReached,
  signal: AbortSignal,
): Promise<BoundGuest> {
  const { state } = ws;
  if (state.t === "active" && state.bound.guest !== lost.guest) return state.bound;
  const outcome = await orAborted(rebind(ws, lost), signal);
  if (outcome.t === "moved") return outcome.bound;
  if (outcome.t === "same") throw presentable(ws, failure);
  throw hasReason(outcome.error, "WORKSPACE_SUSPENDED") ? workspaceSuspended(ws, "TRANSPORT", failure) : outcome.error;
}

interface Call {
  readonly wish: ExecutionWish;
  /** An event was delivered: the command has begun, whatever the guest's client says now. */
  readonly begun: boolean;
  /** What follows the last event that was delivered. */
  readonly nextOffset: number;
}

/** The error of a call that failed: what the workspace's own move explains outranks it. */
async function explained(
  ws: Handle,
  bound: BoundGuest,
  error: unknown,
  call: Call & { readonly mayReread: boolean },
): Promise<unknown> {
  if (!isTransportFailure(error)) return presentable(ws, error);
  if (call.mayReread && holds(ws, bound)) await reread(ws, bound);
  const { t } = ws.state;
  if (t === "suspending" || t === "suspended") return workspaceSuspended(ws, "TRANSPORT", error);
  if (t === "deleting") return workspaceDeleting(ws, error);
  if (error instanceof GuestLost || (call.begun && error instanceof GuestNotReached)) {
    return outcomeUnknown(ws, error, call);
  }
  // Only a call of which nothing can have run is told that its handle is over: it is then made again on another.
  return t === "gone" && error instanceof GuestNotReached ? admissionRefusal(ws) : presentable(ws, error);
}

/** A name that does not resolve says nothing about the workspace. */
function isTransportFailure(error: unknown): boolean {
  return (
    error instanceof GuestLost ||
    (error instanceof GuestNotReached && error.why !== "name-unresolvable") ||
    hasReason(error, "EXECUTION_DETACHED", "AGENT_UNREACHABLE")
  );
}

/** Something was sent and no answer came: whether the command ran, runs or ended is not known. */
function outcomeUnknown(ws: Handle, cause: Error, { wish, nextOffset }: Call): HoldfastError {
  return new HoldfastError("EXECUTION_DETACHED", {
    message: `The link to the guest of workspace ${ws.id} broke, and it is not known what became of execution ${wish.executionId} (${cause.message}). It was not ended by the service. Attach to it by its id, from offset ${nextOffset}.`,
    metadata: { execution_id: wish.executionId, next_offset: String(nextOffset) },
    cause,
  });
}
