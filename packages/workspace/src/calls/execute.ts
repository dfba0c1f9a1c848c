import type { ExecutionId, GuestFeature, HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import type { GuestIdentity } from "../events/workspace-event.ts";
import type { ExecutionEvent, ExecutionWish, Guest } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { type Cancelled, confirmCancelled } from "./cancel-execution.ts";
import { callGuest, type Lost } from "./guest-call.ts";
import { guestGone } from "./guest-gone.ts";

/** Runs a command in the bound guest. The one rebind and the one re-read are those of every call (guest-call.ts). */
export async function* execute(
  ws: Handle,
  wish: ExecutionWish,
  epoch: HolderEpoch | undefined,
  signal: AbortSignal,
  how: HowToExecute = whole(wish, signal),
): AsyncGenerator<ExecutionEvent, void> {
  let nextOffset = 0;
  let started: Cancelled | undefined;
  const open = async function* (guest: Guest, bound: BoundGuest): AsyncGenerator<ExecutionEvent> {
    for await (const event of how.call(guest)) {
      if (event.t === "started") {
        ws.noteBootId(bound, event.bootId);
        started = startedOn(bound, event, epoch);
      }
      if (event.t === "output") nextOffset = event.offset + event.data.length;
      if (event.t === "gap") nextOffset = event.to;
      yield event;
    }
  };
  const lost: Lost = (cause, gone) =>
    gone ? executionGone(ws, gone, wish.executionId, nextOffset, cause) : outcomeUnknown(ws, cause, wish, nextOffset);
  try {
    const claim = { changes: true, epoch } as const;
    yield* callGuest(ws, { feature: how.feature, claim, holds: "executions", open, lost }, signal);
  } catch (error) {
    if (signal.aborted || !started || !hasReason(error, "CANCELLATION_UNCONFIRMED")) throw error;
    await confirmCancelled(ws, started, error); // Throws what is proved, or that nothing was.
    throw confirmedLate(ws, wish, nextOffset, error);
  }
}

/** How the command is run in a guest, and what that needs of it. */
export interface HowToExecute {
  readonly feature: GuestFeature | undefined;
  readonly call: (guest: Guest) => AsyncIterable<ExecutionEvent>;
}

/** With all of its input. */
function whole(wish: ExecutionWish, signal: AbortSignal): HowToExecute {
  return { feature: undefined, call: (guest) => guest.execute(wish, signal) };
}

/** The guest that the command runs on, whatever is bound later. */
function startedOn(
  { guest, pod }: BoundGuest,
  { executionId, bootId }: Extract<ExecutionEvent, { readonly t: "started" }>,
  epoch: HolderEpoch | undefined,
): Cancelled {
  const identity = { podUid: pod.uid, bootId: bootId === "" ? undefined : bootId };
  return { executionId, address: guest.address, startedOn: identity, epoch, expectedBootId: identity.bootId };
}

/** Nothing of it is left by now; how it ended went by while that was in doubt. */
function confirmedLate(ws: Handle, wish: ExecutionWish, nextOffset: number, cause: HoldfastError): HoldfastError {
  return new HoldfastError("EXECUTION_DETACHED", {
    message: `Execution ${wish.executionId} of workspace ${ws.id} has ended, which its guest confirmed only when it was asked again. Its output and result were not all delivered. Attach to it by its id, from offset ${nextOffset}.`,
    metadata: { execution_id: wish.executionId, next_offset: String(nextOffset) },
    cause,
  });
}

/** The pod that the command was sent to is gone. */
export function executionGone(
  ws: Handle,
  gone: GuestIdentity,
  id: ExecutionId,
  nextOffset: number,
  cause: Error,
): HoldfastError {
  const metadata = { execution_id: id, next_offset: String(nextOffset) };
  return guestGone(ws, gone, `execution ${id}`, metadata, cause);
}

/** Something was sent and no answer came: whether the command ran, runs or ended is not known. */
function outcomeUnknown(ws: Handle, cause: Error, wish: ExecutionWish, nextOffset: number): HoldfastError {
  return new HoldfastError("EXECUTION_DETACHED", {
    message: `The link to the guest of workspace ${ws.id} broke, and it is not known what became of execution ${wish.executionId} (${cause.message}). It was not ended by the service. Attach to it by its id, from offset ${nextOffset}.`,
    metadata: { execution_id: wish.executionId, next_offset: String(nextOffset) },
    cause,
  });
}
