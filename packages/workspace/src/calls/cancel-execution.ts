import { Deadline, DeadlineExceeded, orAborted, pause } from "@holdfast/async";
import {
  type BootId,
  cancelAskAgainMs,
  type ExecutionId,
  guestDialTimeoutMs,
  type HolderEpoch,
} from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { guestAhead } from "../binding/fence-guest.ts";
import type { GuestIdentity } from "../events/workspace-event.ts";
import type { CancelOrder } from "../ports/executions.ts";
import { type GuestAddress, GuestLost, GuestNotReached } from "../ports/guest.ts";
import type { Handle } from "../state/handle.ts";
import { admit } from "./admission.ts";
import { assertClaim, isEpochRefusal, settleRefusal } from "./epoch-claim.ts";
import { assertServes } from "./guest-call.ts";
import { tellUnconfirmed } from "./unconfirmed-cancellation.ts";

const askEveryMs = 1_000;

/** A command whose end is to be confirmed, and the guest that it was started on. */
export interface Cancelled {
  readonly executionId: ExecutionId;
  readonly address: GuestAddress;
  readonly startedOn: GuestIdentity;
  readonly epoch: HolderEpoch | undefined;
  /** Between SIGTERM and SIGKILL. Absent: the guest's default. */
  readonly graceMs?: number | undefined;
  /** Only in this agent process. Absent: in whichever knows the command; a new one of the same pod says that it was lost. */
  readonly expectedBootId?: BootId | undefined;
}

/**
 * Ends a command of the bound guest and resolves once nothing of it is left. One whose end could not be confirmed keeps its pod: nothing
 * is patched or deleted, and it is never said to have failed. The asking is the service's: a caller that goes away ends only its wait.
 */
export async function cancelExecution(
  ws: Handle,
  { executionId, graceMs, expectedBootId }: CancelOrder,
  epoch: HolderEpoch | undefined,
  caller: AbortSignal,
): Promise<{ readonly alreadyEnded: boolean }> {
  const bound = await admit(ws, caller);
  assertServes(ws, bound, "execution-control");
  const claim = { changes: true, epoch };
  await assertClaim(ws, bound, claim, caller);
  const { guest, pod, bootId } = bound;
  const startedOn = { podUid: pod.uid, bootId: bootId === "" ? undefined : bootId };
  const cancelled = { executionId, address: guest.address, startedOn, epoch, graceMs, expectedBootId };
  for (let mayFence = true; ; mayFence = false) {
    try {
      return await orAborted(confirmCancelled(ws, cancelled), caller);
    } catch (error) {
      if (!isEpochRefusal(error)) throw error;
      await settleRefusal(ws, bound, claim, error, caller);
      if (!mayFence) throw guestAhead(ws, bound.fenced, error);
    }
  }
}

/**
 * Asks for the cancellation, each time over a fresh connection, for 8 s of the service's own clock (L43). Throws
 * CANCELLATION_UNCONFIRMED, or what is proved of its guest.
 */
export async function confirmCancelled(
  ws: Handle,
  cancelled: Cancelled,
  first?: unknown,
): Promise<{ readonly alreadyEnded: boolean }> {
  using within = new Deadline(ws.deps.clock, cancelAskAgainMs + (cancelled.graceMs ?? 0));
  let unconfirmed: unknown = first;
  for (;;) {
    try {
      if (unconfirmed !== undefined) await pause(ws.deps.clock, askEveryMs, within.signal);
      return await askOnce(ws, cancelled, within);
    } catch (error) {
      if (unconfirmed === undefined && isOtherAnswer(error)) throw error;
      // Neither a pause that the deadline ends nor a guest that has forgotten the id confirms what was asked before.
      if (unconfirmed === undefined || mayChange(error)) unconfirmed = newest(unconfirmed, error);
      if (!mayChange(error) || within.signal.aborted) throw await tellUnconfirmed(ws, cancelled, unconfirmed);
    }
  }
}

/** A connection that is lost without anybody's noticing answers nothing: each try has its own. */
async function askOnce(
  ws: Handle,
  { address, executionId, epoch, graceMs, expectedBootId }: Cancelled,
  within: Deadline,
): Promise<{ readonly alreadyEnded: boolean }> {
  const guest = ws.deps.guests.guest(address);
  using answer = within.within(cancelAnswerMs + (graceMs ?? 0));
  try {
    const order = { executionId, graceMs, expectedBootId };
    return await guest.under(epoch).executions.cancel(order, answer);
  } finally {
    guest.close();
  }
}

/** The guest takes up to 5 s to see a command's processes gone. */
const cancelAnswerMs = 5_000 + guestDialTimeoutMs;

/** What is said of a command at last: an answer rather than a silence. */
function newest(before: unknown, now: unknown): unknown {
  return before instanceof HoldfastError && !(now instanceof HoldfastError) ? before : now;
}

/** The guest answered, and not that it could not confirm. */
function isOtherAnswer(error: unknown): boolean {
  const doubts = hasReason(error, "CANCELLATION_UNCONFIRMED", "AGENT_UNREACHABLE", "AGENT_RETIRING");
  return error instanceof HoldfastError && !doubts;
}

/** False for an answer that asking again would only repeat. */
function mayChange(error: unknown): boolean {
  if (error instanceof HoldfastError) return hasReason(error, "CANCELLATION_UNCONFIRMED", "AGENT_UNREACHABLE");
  if (error instanceof GuestNotReached) return error.why === "no-connection";
  return error instanceof GuestLost || error instanceof DeadlineExceeded;
}
