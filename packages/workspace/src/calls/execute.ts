import type { HolderEpoch } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { ExecutionEvent, ExecutionWish, Guest } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import type { BoundGuest } from "../state/workspace-state.ts";
import { callGuest } from "./guest-call.ts";

/** Runs a command in the bound guest. The one rebind and the one re-read are those of every call (guest-call.ts). */
export async function* execute(
  ws: Handle,
  wish: ExecutionWish,
  epoch: HolderEpoch | undefined,
  signal: AbortSignal,
): AsyncGenerator<ExecutionEvent> {
  let nextOffset = 0;
  const open = async function* (guest: Guest, bound: BoundGuest): AsyncGenerator<ExecutionEvent> {
    for await (const event of guest.execute(wish, signal)) {
      if (event.t === "started") ws.noteBootId(bound, event.bootId);
      if (event.t === "output") nextOffset = event.offset + event.data.length;
      if (event.t === "gap") nextOffset = event.to;
      yield event;
    }
  };
  const lost = (cause: Error): HoldfastError => outcomeUnknown(ws, cause, wish, nextOffset);
  yield* callGuest(ws, { feature: undefined, claim: { changes: true, epoch }, open, lost }, signal);
}

/** Something was sent and no answer came: whether the command ran, runs or ended is not known. */
function outcomeUnknown(ws: Handle, cause: Error, wish: ExecutionWish, nextOffset: number): HoldfastError {
  return new HoldfastError("EXECUTION_DETACHED", {
    message: `The link to the guest of workspace ${ws.id} broke, and it is not known what became of execution ${wish.executionId} (${cause.message}). It was not ended by the service. Attach to it by its id, from offset ${nextOffset}.`,
    metadata: { execution_id: wish.executionId, next_offset: String(nextOffset) },
    cause,
  });
}
