import { type Deadline, DeadlineExceeded } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import { startTimeout } from "../binding/start-problem.ts";
import type { Handle } from "../state/handle.ts";
import { Preempted } from "../transition-queue.ts";
import type { Origin } from "../wishes.ts";
import { CreateUnresolved } from "../writes/create-workspace.ts";
import { seekLateCreate } from "./late-create.ts";
import { readStanding } from "./read-standing.ts";
import { type StartAttempt, tidyFailedStart, withAftermath } from "./start-attempt.ts";

/** Runs a start. One that fails is tidied up after (L19) and leaves what a re-read shows; its own error is the caller's (L6). */
export async function starting(
  ws: Handle,
  attempt: StartAttempt,
  within: Deadline,
  start: (attempt: StartAttempt) => Promise<Origin>,
): Promise<Origin> {
  try {
    return await start(attempt);
  } catch (error) {
    const preempted = within.signal.reason instanceof Preempted;
    const presented = present(ws, error, within);
    // A suspend or delete that ended this start decides itself what becomes of the workspace.
    const aftermath = preempted ? "not_woken" : await tidyFailedStart(ws, attempt, presented);
    if (error instanceof CreateUnresolved) seekLateCreate(ws, attempt);
    await leaveStart(ws, presented, preempted);
    throw withTaken(withAftermath(presented, aftermath), attempt);
  }
}

/** L20: a number that was taken is told also where the start then failed: nobody else could tell it. */
function withTaken(error: unknown, { fencing, held }: StartAttempt): unknown {
  const isTaken = fencing.t === "take_over" && held !== undefined;
  return isTaken && error instanceof HoldfastError ? error.withMetadata({ epoch: String(held) }) : error;
}

async function leaveStart(ws: Handle, error: unknown, preempted: boolean): Promise<void> {
  if (ws.state.t === "opening" && !preempted) {
    // L1: a suspend of ours that may still land is not forgotten with the handle.
    const mayStillLand = ws.unresolved.suspend;
    ws.commit({
      t: "startFailed",
      standing: mayStillLand ? { t: "suspending", leaving: undefined } : { t: "gone", why: "start_failed" },
    });
  }
  if (ws.state.t === "resuming") {
    const why = error instanceof Error ? error.message : "the start failed";
    ws.commit({ t: "startFailed", standing: await readStanding(ws, why) });
  }
}

function present(ws: Handle, error: unknown, within: Deadline): unknown {
  if (error instanceof CreateUnresolved) return error.error;
  if (within.signal.reason instanceof Preempted) return within.signal.reason.refusal;
  if (within.expired && error instanceof DeadlineExceeded) {
    const look = { pods: undefined, left: ws.left, walkedInOnTerminating: false, failure: error };
    return startTimeout(ws, look, within.budgetMs);
  }
  return error;
}
