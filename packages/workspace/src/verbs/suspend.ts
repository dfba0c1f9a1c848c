import { type Deadline, DeadlineExceeded } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import { claimsToRecord } from "../binding/claims.ts";
import { unfenced } from "../fence/fencing.ts";
import { gate } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import { handleOver, workspaceDeleting } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { pauseBeforeRetry } from "../waiting.ts";
import type { FlushReport, SuspendWish } from "../wishes.ts";
import { writeMode } from "../writes/write-mode.ts";
import { confirmStopped } from "./confirm-stopped.ts";
import { flushBefore, skipped } from "./flush.ts";

/** How a suspend ended: what became of the flush, and the object as the last look showed it. */
export interface Suspended {
  readonly flush: FlushReport;
  readonly sandbox: SandboxReading;
}

/** Stops the pod and keeps the disk. Resolves only after the pod has been seen gone. Deletes nothing. */
export async function suspend(ws: Handle, wish: SuspendWish, within: Deadline): Promise<Suspended> {
  const writtenBy = ws.deps.randomId();
  let sent = false;
  try {
    for (let round = 0; ; round += 1) {
      if (ws.state.t === "gone") throw handleOver(ws, ws.state.why);
      // First, uncached: what is not ours to stop must lose nothing.
      const { sandbox, epoch } = await gate(ws, wish.fencing ?? unfenced, within);
      // L34: a delete of ours may still land, and no suspend is sent in its place.
      if (ws.state.t === "deleting") throw workspaceDeleting(ws);
      const isConfirmed = ws.stillConfirmed(sandbox) && !ws.unresolved.any;
      if (ws.state.t === "suspended" && isConfirmed && epoch === undefined) {
        return { flush: skipped("It was suspended already."), sandbox };
      }
      const flush = await flushBefore(ws, wish.flush, sandbox, within);
      const pods = await ws.deps.cluster.readPods(sandbox, within);
      const volumeClaimUids = await claimsToRecord(ws, sandbox, within);

      ws.commit({ t: "suspendBegan" });
      const onUnanswered = (): void => {
        sent = true;
        ws.commit({ t: "suspendUnknown" });
      };
      const stillHolds = (now: SandboxReading): Promise<boolean> => isSamePods(ws, pods, now, within);
      const marks = { writtenBy, epoch, volumeClaimUids };
      const write = { mode: "Suspended", from: sandbox, ...marks, onUnanswered, stillHolds } as const;
      const outcome = await writeMode(ws, write, within);
      if (outcome.t === "moved" || outcome.t === "refused") ws.commit({ t: "suspendRefused" });
      if (outcome.t === "refused") throw outcome.error;
      if (outcome.t === "unknown") throw unconfirmed(ws, within, true, outcome.error);
      if (outcome.t === "moved") {
        // Another pod may stand by now, which was not flushed: everything again from the gate (L24).
        await pauseBeforeRetry(ws.deps, round, within);
        continue;
      }

      sent = true;
      ws.commit({ t: "suspendAccepted" });
      for (const pod of pods) ws.left.add(pod.uid);
      return { flush, sandbox: await confirmStopped(ws, outcome.sandbox.generation, within) };
    }
  } catch (error) {
    // Whatever broke off between: the suspend may have been written.
    if (ws.state.t === "closing") ws.commit({ t: "suspendUnknown" });
    if (within.expired && error instanceof DeadlineExceeded) throw unconfirmed(ws, within, sent, error);
    throw error;
  }
}

/** Another pod would be one that nobody flushed. */
async function isSamePods(
  ws: Handle,
  before: readonly PodReading[],
  now: SandboxReading,
  within: Deadline,
): Promise<boolean> {
  const pods = await ws.deps.cluster.readPods(now, within);
  return pods.every(({ uid }) => before.some((pod) => pod.uid === uid));
}

function unconfirmed(ws: Handle, within: Deadline, sent: boolean, cause: unknown): HoldfastError {
  const what = sent
    ? "was asked to stop, and it was not confirmed that it did"
    : "was not asked to stop: the time ended before the suspend could be sent";
  return new HoldfastError("SUSPEND_UNCONFIRMED", {
    message: `Workspace ${ws.id} ${what} within ${within.budgetMs} ms. Its disk is kept, and nothing was taken back. Suspend it again to send and wait again.`,
    metadata: { budget_ms: String(within.budgetMs), sent: String(sent) },
    cause,
  });
}
