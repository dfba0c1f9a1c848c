import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, type HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { bindableOf } from "../binding/bindable.ts";
import { claimsToRecord } from "../binding/claims.ts";
import { type StartFencing, unfenced } from "../fence/fencing.ts";
import { findOwn } from "../fence/gate.ts";
import { epochNotTaken, epochRequired, epochSuperseded, storedEpoch } from "../fence/holder-epoch.ts";
import type { SandboxReading } from "../ports/cluster.ts";
import type { Handle } from "../state/handle.ts";
import type { SoughtCreate } from "../state/late-creates.ts";
import { writeDeadline } from "../waiting.ts";
import type { OnStartFailure, OpenWish } from "../wishes.ts";

/** One call's start: its marks, and what is proved that it did. */
export interface StartAttempt extends SoughtCreate {
  readonly createdBy: string;
  /** The written-by of each of its writes: read back, one of them proves that nobody has written since. */
  readonly marks: string[];
  readonly fencing: StartFencing;
  readonly onStartFailure: OnStartFailure;
  /** Also writes the template's current pod template, where it wakes (L31). */
  readonly refreshPodTemplate: boolean;
  /** Uses the disk that stands, though it is another than the known one (L16). */
  readonly acceptReplacedDisk: boolean;
  /** Set once the POST, or the Running patch that tested Suspended, is known applied: only then may a failure be cleaned up. */
  woken: boolean;
  /** The epoch that the object is known to have stored by, or for, this call. */
  held: HolderEpoch | undefined;
}

export function startAttempt(
  ws: Handle,
  onStartFailure: OnStartFailure,
  wish: Pick<OpenWish, "fencing" | "refreshPodTemplate" | "acceptReplacedDisk">,
): StartAttempt {
  return {
    createdBy: ws.deps.randomId(),
    marks: [],
    fencing: wish.fencing ?? unfenced,
    onStartFailure,
    refreshPodTemplate: wish.refreshPodTemplate ?? false,
    acceptReplacedDisk: wish.acceptReplacedDisk ?? false,
    woken: false,
    held: undefined,
    takenOn: false,
  };
}

/** The written-by of the call's next write. One for each, so that none is taken for another. */
export function newMark(ws: Handle, attempt: StartAttempt): string {
  const mark = ws.deps.randomId();
  attempt.marks.push(mark);
  return mark;
}

/** L22: a start answers only while it still holds what it was let pass on. Asked on the reading that its guest is fenced with. */
export function assertStillHeld({ fencing, held }: StartAttempt, sandbox: SandboxReading): void {
  const stored = storedEpoch(sandbox);
  const meanwhile = "Somebody else took the workspace over while it was being started";
  if (fencing.t === "none") {
    if (stored > 0) throw epochRequired(sandbox.name, stored, meanwhile);
    return;
  }
  const mine = fencing.t === "epoch" ? fencing.epoch : held;
  if (mine === undefined) throw new Error("a take-over was bound before it was taken");
  if (stored > mine) throw epochSuperseded(sandbox.name, mine, stored, meanwhile);
  if (stored < mine) throw epochNotTaken(sandbox.name, mine, stored);
}

/** What was done about a workspace that this call woke and could not start. `left_as_found`: nothing, it does not run (or is another). */
export type Aftermath = "not_woken" | "left_running" | "left_as_found" | "suspended" | "unknown";

/**
 * L19: suspends again what this very call woke, if nobody can be using it. Sent at most once, on the reading whose written-by is still
 * this call's; deletes nothing, and never throws: the start's own error is the caller's.
 */
export async function tidyFailedStart(ws: Handle, attempt: StartAttempt, error: unknown): Promise<Aftermath> {
  if (!attempt.woken) return "not_woken";
  if (attempt.onStartFailure === "leave") return "left_running";
  try {
    const aftermath = await suspendWhatWeWoke(ws, attempt, error);
    ws.deps.log.warn({ workspaceId: ws.id, aftermath, error }, "a workspace that was woken could not be started");
    return aftermath;
  } catch (failure) {
    ws.deps.log.warn(
      { workspaceId: ws.id, error: failure },
      "a failed start could not be cleaned up; it was left running",
    );
    return "left_running";
  }
}

async function suspendWhatWeWoke(ws: Handle, attempt: StartAttempt, error: unknown): Promise<Aftermath> {
  using reads = new Deadline(ws.deps.clock, clusterRequestTimeoutMs);
  const found = await findOwn(ws, reads);
  if (found.t !== "ours" || found.sandbox.deleting || found.sandbox.mode === "Suspended") return "left_as_found";
  const { sandbox } = found;
  if (!attempt.marks.includes(sandbox.stamps.writtenBy ?? "")) return "left_running";
  // A tool that took it over and left our mark standing holds it now.
  if (storedEpoch(sandbox) !== (attempt.held ?? 0)) return "left_running";
  const volumeClaimUids = await claimsToRecord(ws, sandbox, reads); // L16: with each suspend.
  // Read after the object that the patch tests: a pod that is bindable by then may be in somebody's use.
  const pods = await ws.deps.cluster.readPods(sandbox, reads);
  if (bindableOf(pods, ws.left) && !isProvenPrivileged(error)) return "left_running";

  if (attempt.takenOn) return "left_running";
  using time = writeDeadline(ws.deps);
  const wish = {
    reading: sandbox,
    mode: "Suspended",
    writtenBy: ws.deps.randomId(),
    epoch: undefined,
    volumeClaimUids,
    now: ws.deps.clock.now(),
  } as const;
  const ending = await ws.deps.cluster.setMode(wish, time);
  if (ending.t === "applied") {
    for (const pod of pods) ws.left.add(pod.uid);
    ws.remember(ending.value);
    return "suspended";
  }
  if (ending.t === "unknown") ws.unresolved.suspendSentFrom(sandbox);
  return ending.t === "unknown" ? "unknown" : "left_running";
}

/** A guest that did not answer, or turned the probe away, is not proved to be privileged: somebody else may be using it. */
function isProvenPrivileged(error: unknown): boolean {
  return hasReason(error, "GUEST_PRIVILEGED") && error.metadata.proven === "true";
}

/** The start's error, saying what was done about it. */
export function withAftermath(error: unknown, aftermath: Aftermath): unknown {
  if (!(error instanceof HoldfastError) || aftermath === "not_woken") return error;
  return error.withMetadata({ on_start_failure: aftermath });
}
