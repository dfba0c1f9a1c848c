import { type Deadline, DeadlineExceeded } from "@holdfast/async";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { claimsToRecord } from "../binding/claims.ts";
import { unfenced } from "../fence/fencing.ts";
import { gate, type Passed } from "../fence/gate.ts";
import type { PodReading, SandboxReading } from "../ports/cluster.ts";
import { handleOver, workspaceDeleting, workspaceSuspended } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { pauseBeforeRetry } from "../waiting.ts";
import type { FlushReport, QuiesceReport, SuspendWish } from "../wishes.ts";
import { type ModeOutcome, writeMode } from "../writes/write-mode.ts";
import { confirmStopped } from "./confirm-stopped.ts";
import { skipped } from "./flush.ts";
import { releaseHold, unserved } from "./quiesce.ts";
import { type QuietDisk, quietDisk, releaseSessions } from "./quiet-disk.ts";

/** How a suspend ended: what became of quiesce and flush, and the object as the last look showed it. */
export interface Suspended {
  readonly flush: FlushReport;
  /** Undefined: none was asked for. */
  readonly quiesce: QuiesceReport | undefined;
  readonly sandbox: SandboxReading;
}

/** What one suspend has done so far, for its error. */
interface Progress {
  readonly writtenBy: string;
  /** The patch was sent, and may have landed. */
  sent: boolean;
  /** Terminals of this service's callers were ended for it. */
  released: boolean;
  /** How many programs its quiesce ended. Undefined: none was confirmed. */
  stopped: number | undefined;
}

/**
 * Stops the pod and keeps the disk. Resolves only after the pod has been seen gone. Deletes nothing. In the order of L25 to L29: gate,
 * terminals, quiesce, flush, patch, wait. (docs/design/suspend-and-disk.md)
 */
export async function suspend(ws: Handle, wish: SuspendWish, within: Deadline): Promise<Suspended> {
  const progress: Progress = { writtenBy: ws.deps.randomId(), sent: false, released: false, stopped: undefined };
  try {
    for (let round = 0; ; round += 1) {
      const suspended = await suspendOnce(ws, wish, progress, within);
      if (suspended) return suspended;
      // Another pod may stand by now, which was not flushed: everything again from the gate (L24).
      await pauseBeforeRetry(ws.deps, round, within);
    }
  } catch (error) {
    // Whatever broke off between: the suspend may have been written.
    if (ws.state.t === "closing") ws.commit({ t: "suspendUnknown" });
    const isLate = within.expired && error instanceof DeadlineExceeded;
    throw sayingEnded(isLate ? unconfirmed(ws, within, progress.sent, error) : error, progress);
  }
}

/** Undefined: nothing of it landed, and what it was decided on has moved. */
async function suspendOnce(
  ws: Handle,
  wish: SuspendWish,
  progress: Progress,
  within: Deadline,
): Promise<Suspended | undefined> {
  if (ws.state.t === "gone") throw handleOver(ws, ws.state.why);
  // First, uncached: what is not ours to stop must lose nothing.
  const passed = await gate(ws, wish.fencing ?? unfenced, within);
  if (ws.state.t === "deleting") throw deleteStands(ws);
  if (isSuspendedAlready(ws, passed)) return nothingToDo(wish, passed);

  // Read before the guest is asked, so that a pod which is flushed and replaced afterwards is noticed.
  const pods = await ws.deps.cluster.readPods(passed.sandbox, within);
  if (await releaseSessions(ws, workspaceSuspended(ws, "RELEASED"), within)) progress.released = true;
  const onQuiesced = (stopped: number): void => {
    progress.stopped = (progress.stopped ?? 0) + stopped;
  };
  const quiet = await quietDisk(ws, wish, { sandbox: passed.sandbox, pods, onQuiesced }, within);

  const outcome = await writeSuspended(ws, passed, { pods, quiet, progress }, within);
  if (outcome.t === "moved" || outcome.t === "refused") {
    progress.sent = false; // Nothing of it landed, nor can.
    await releaseHold(ws, quiet.hold);
  }
  if (outcome.t === "refused") throw outcome.error;
  if (outcome.t === "unknown") throw unconfirmed(ws, within, true, outcome.error);
  if (outcome.t === "moved") return undefined;

  progress.sent = true;
  ws.commit({ t: "suspendAccepted" });
  for (const pod of pods) ws.left.add(pod.uid);
  try {
    const sandbox = await confirmStopped(ws, outcome.sandbox.generation, within);
    return { flush: quiet.flush, quiesce: quiet.quiesce, sandbox };
  } catch (error) {
    // Woken before the controller looked, the very pod that is held quiet may live on.
    if (hasReason(error, "SUSPEND_OVERTAKEN")) await releaseHold(ws, quiet.hold);
    throw error;
  }
}

/** L34: no suspend is sent in the place of a delete that may still land. One that cannot any more has been turned away: a new handle may go on. */
function deleteStands(ws: Handle): HoldfastError {
  if (ws.unresolved.delete) return workspaceDeleting(ws);
  ws.commit({ t: "deleteRefused" });
  return handleOver(ws, "delete_refused");
}

/** L5: nobody wrote since this handle saw it stopped, and there is no epoch to store. */
function isSuspendedAlready(ws: Handle, { sandbox, epoch }: Passed): boolean {
  const isConfirmed = ws.stillConfirmed(sandbox) && !ws.unresolved.any;
  return ws.state.t === "suspended" && isConfirmed && epoch === undefined;
}

function nothingToDo(wish: SuspendWish, { sandbox }: Passed): Suspended {
  const why = "It was suspended already.";
  return { flush: skipped(why), quiesce: wish.quiesce && unserved("skipped", why), sandbox };
}

interface Decided {
  readonly pods: readonly PodReading[];
  readonly quiet: QuietDisk;
  readonly progress: Progress;
}

/** Writes it, if the pods are still those that were asked. Commits how that ended, but for an applied one. */
async function writeSuspended(
  ws: Handle,
  { sandbox, epoch }: Passed,
  { pods, quiet, progress }: Decided,
  within: Deadline,
): Promise<ModeOutcome | { readonly t: "moved" }> {
  let volumeClaimUids: Readonly<Record<string, string>> | undefined;
  try {
    if (!(await isSamePods(ws, pods, sandbox, within))) return { t: "moved" };
    volumeClaimUids = await claimsToRecord(ws, sandbox, within);
  } catch (error) {
    await releaseHold(ws, quiet.hold);
    throw error;
  }

  ws.commit({ t: "suspendBegan" });
  const onUnanswered = (): void => {
    progress.sent = true;
    ws.commit({ t: "suspendUnknown" });
  };
  const stillHolds = (now: SandboxReading): Promise<boolean> => isSamePods(ws, pods, now, within);
  const marks = { writtenBy: progress.writtenBy, epoch, volumeClaimUids };
  const write = { mode: "Suspended", from: sandbox, ...marks, onUnanswered, stillHolds } as const;
  const outcome = await writeMode(ws, write, within);
  if (outcome.t === "moved" || outcome.t === "refused") ws.commit({ t: "suspendRefused" });
  return outcome;
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

/** L29: what was ended for a suspend which then did not happen stays ended, and the error says so. */
function sayingEnded(error: unknown, { released, stopped, sent }: Progress): unknown {
  if (!(error instanceof HoldfastError)) return error;
  const metadata = {
    ...error.metadata,
    ...(released && { sessions_released: "true" }),
    ...(stopped !== undefined && { programs_stopped: String(stopped) }),
  };
  const ended = [
    released ? " Terminals that were attached through this service were ended for it, and stay so." : "",
    stopped ? ` Its quiesce ended ${stopped} programs, which stay ended.` : "",
  ].join("");
  const { reason, violations, cause } = error;
  return new HoldfastError(reason, {
    message: sent ? error.message : error.message + ended,
    metadata,
    violations,
    cause,
  });
}
