import { DeadlineExceeded, orAborted } from "@holdfast/async";
import type { GuestFeature } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { guestAhead } from "../binding/fence-guest.ts";
import { presentable } from "../binding/guest-failure.ts";
import type { GuestIdentity } from "../events/workspace-event.ts";
import { type Guest, GuestLost, GuestNotReached } from "../ports/guest.ts";
import { admissionRefusal, notSent, workspaceDeleting, workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import type { LiveCall } from "../state/live-calls.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { admit } from "./admission.ts";
import { assertClaim, type EpochClaim, isEpochRefusal, settleRefusal } from "./epoch-claim.ts";
import { rebind } from "./rebind.ts";
import { holds, reread } from "./reread.ts";

/** One call of the data plane: what it asks of a guest, and what is to be said of it where its link broke. */
export interface GuestCall<Event> {
  /** What the guest must have announced; undefined: every guest serves it. */
  readonly feature: GuestFeature | undefined;
  readonly claim: EpochClaim;
  /** What its caller holds open by it; undefined: nothing that is counted. */
  readonly holds?: LiveCall;
  /** Makes the call in this guest, which carries the call's epoch. Made once more, in another guest, where nothing of it was sent. */
  readonly open: (guest: Guest, bound: BoundGuest) => AsyncIterable<Event>;
  /** True once the call cannot be made a second time, though nothing of it was delivered. */
  readonly isSpent?: () => boolean;
  /** The error of a call whose link broke after something was sent. */
  readonly lost: Lost;
}

/** `gone`: the guest that it was made in, where its pod was seen gone. */
export type Lost = (cause: Error, gone: GuestIdentity | undefined) => HoldfastError;

/**
 * Makes a call in the bound guest. Where nothing of it can have run (GuestNotReached, before the first event) it moves to another
 * guest, once (L39). A failure of the transport is followed by at most one re-read (L36). A guest that has not heard of the call's epoch
 * yet is told, once, where the object has it (L22).
 */
export async function* callGuest<Event>(
  ws: Handle,
  call: GuestCall<Event>,
  signal: AbortSignal,
): AsyncGenerator<Event, void> {
  signal.throwIfAborted();
  let bound = await admit(ws, signal);
  let mayRebind = true;
  let mayReread = true;
  let mayFence = true;
  let begun = false;
  for (;;) {
    assertServes(ws, bound, call.feature);
    const giveBack = ws.leases.take(bound.guest);
    const isOver = call.holds && ws.live.take(ws.id, call.holds);
    let sent = false;
    try {
      await assertClaim(ws, bound, call.claim, signal);
      sent = true;
      for await (const event of call.open(bound.guest.under(call.claim.epoch), bound)) {
        begun = true;
        yield event;
      }
      return;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const error = thrown instanceof DeadlineExceeded ? unanswered(thrown) : thrown;
      const isSpent = begun || call.isSpent?.() === true;
      if (sent && isEpochRefusal(error) && call.claim.changes) {
        await settleRefusal(ws, bound, call.claim, error, signal);
        if (isSpent || !mayFence) throw guestAhead(ws, bound.fenced, error);
        mayFence = false;
        if (ws.state.t === "active" && ws.state.bound.guest === bound.guest) bound = ws.state.bound;
        continue;
      }
      if (isSpent || !mayRebind || !(error instanceof GuestNotReached) || error.why === "name-unresolvable") {
        throw await explained(ws, bound, error, { lost: call.lost, begun, mayReread });
      }
      bound = await otherGuest(ws, bound, error, signal);
      mayRebind = false;
      mayReread = false;
    } finally {
      isOver?.();
      giveBack();
    }
  }
}

/** A call with one answer. */
export async function askGuest<Answer>(
  ws: Handle,
  call: Omit<GuestCall<Answer>, "open"> & { readonly ask: (guest: Guest, bound: BoundGuest) => Promise<Answer> },
  signal: AbortSignal,
): Promise<Answer> {
  const { ask, ...rest } = call;
  const open = async function* (guest: Guest, bound: BoundGuest): AsyncGenerator<Answer> {
    yield await ask(guest, bound);
  };
  for await (const answer of callGuest(ws, { ...rest, open }, signal)) return answer;
  throw new Error("a call with one answer ended without it");
}

/** A request that needs what the guest did not announce is refused before anything starts, never served in a weaker form. */
export function assertServes(ws: Handle, bound: BoundGuest, feature: GuestFeature | undefined): void {
  if (feature === undefined || bound.features.includes(feature)) return;
  throw new HoldfastError("GUEST_FEATURE_MISSING", {
    message: `The guest of workspace ${ws.id} does not serve ${feature}. Nothing was sent to it. The workspace needs an image with a newer agent.`,
    metadata: { feature, announced: bound.features.join(",") },
  });
}

/** A guest that did not answer in time may have got what was sent. */
function unanswered(late: DeadlineExceeded): GuestLost {
  return new GuestLost(`it did not answer within ${late.budgetMs} ms`, late);
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
  throw hasReason(outcome.error, "WORKSPACE_SUSPENDED")
    ? notSent(workspaceSuspended(ws, "TRANSPORT", failure))
    : outcome.error;
}

interface Failed {
  readonly lost: Lost;
  /** An event was delivered: the call has begun, whatever the guest's client says now. */
  readonly begun: boolean;
  readonly mayReread: boolean;
}

/** The error of a call that failed: what the workspace's own move explains outranks it. */
async function explained(ws: Handle, bound: BoundGuest, error: unknown, call: Failed): Promise<unknown> {
  if (!isTransportFailure(error)) return presentable(ws, error, bound.guest.address.host);
  if (call.mayReread && holds(ws, bound)) await reread(ws, bound);
  const { t } = ws.state;
  if (t === "suspending" || t === "suspended") return workspaceSuspended(ws, "TRANSPORT", error);
  if (t === "deleting") return workspaceDeleting(ws, error);
  if (error instanceof GuestLost || (call.begun && error instanceof GuestNotReached)) {
    const { guest, pod, bootId } = bound;
    return call.lost(error, ws.leases.isGone(guest) ? { podUid: pod.uid, bootId } : undefined);
  }
  // Only a call of which nothing can have run is told that its handle is over: it is then made again on another.
  return t === "gone" && error instanceof GuestNotReached ? admissionRefusal(ws) : presentable(ws, error);
}

/** A name that does not resolve says nothing about the workspace. */
function isTransportFailure(error: unknown): boolean {
  return (
    error instanceof GuestLost ||
    (error instanceof GuestNotReached && error.why !== "name-unresolvable") ||
    hasReason(error, "EXECUTION_DETACHED", "SESSION_DETACHED", "AGENT_UNREACHABLE")
  );
}
