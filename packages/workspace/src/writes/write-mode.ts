import type { Deadline } from "@holdfast/async";
import type { HolderEpoch } from "@holdfast/contract";
import { HoldfastError, hasReason } from "@holdfast/errors";
import { readOwn } from "../fence/gate.ts";
import type { Mode, SandboxReading, TemplateReading } from "../ports/cluster.ts";
import { workspaceNotFound, writeUnresolved } from "../refusals.ts";
import type { Handle } from "../state/handle.ts";
import { hasMoved, wasWritten } from "../state/unresolved-writes.ts";
import { pauseBeforeRetry, writeDeadline } from "../waiting.ts";

export interface ModeWrite {
  readonly mode: Mode;
  /** The gate's reading: what the patch is composed from. */
  readonly from: SandboxReading;
  /** Random, the same on repeats, and of no earlier write: only it, read back, proves that this write landed. */
  readonly writtenBy: string;
  /** Stored by the same patch; undefined: the stored epoch is left as it is. */
  readonly epoch: HolderEpoch | undefined;
  readonly volumeClaimUids?: Readonly<Record<string, string>> | undefined;
  /** Written with a wake (L31). */
  readonly refresh?: TemplateReading | undefined;
  /** Called at the first unanswered attempt, before anything is read. */
  readonly onUnanswered?: () => void;
  /**
   * Asked where only the resourceVersion moved, before the patch is composed anew: false where what was decided at the gate must be
   * decided again (another pod). Left out: nothing of the kind.
   */
  readonly stillHolds?: (now: SandboxReading) => Promise<boolean>;
}

/**
 * `applied`: by an answer, or by our mark read back. `moved`: nothing of ours landed, nor can it, and the object is another than the gate
 * saw; decide again from the gate.
 */
export type ModeOutcome =
  | { readonly t: "applied"; readonly sandbox: SandboxReading; readonly proof: "answer" | "read_back" }
  | { readonly t: "moved" }
  | { readonly t: "refused"; readonly error: HoldfastError }
  | { readonly t: "unknown"; readonly error: HoldfastError };

/**
 * Writes the mode, and resolves an unknown ending by proof: our mark read back, or else the same write again, which makes the first
 * one's condition fail (L1, L24). Ends `unknown` only when the deadline does. An object that is gone or another ends the handle, and is
 * thrown.
 */
export async function writeMode(ws: Handle, write: ModeWrite, within: Deadline): Promise<ModeOutcome> {
  let from = write.from;
  let unanswered: unknown;
  for (let attempt = 0; ; attempt += 1) {
    const ending = await send(ws, write, from);
    if (ending.t === "applied") {
      ws.remember(ending.value);
      return { t: "applied", sandbox: ending.value, proof: "answer" };
    }
    if (ending.t === "unknown") {
      if (unanswered === undefined) write.onUnanswered?.();
      unanswered = ending.cause ?? "no answer";
      noteUnresolved(ws, write, from);
    } else if (ending.why !== "condition") {
      if (ending.why === "absent") throw vanished(ws, ending.error);
      return unanswered === undefined ? { t: "refused", error: ending.error } : unknown(ws, write, ending.error);
    }

    const now = await readBack(ws, within, attempt);
    if (now.t === "unread") {
      return unanswered === undefined ? { t: "refused", error: now.error } : unknown(ws, write, unanswered);
    }
    if (now.sandbox.stamps.writtenBy === write.writtenBy) {
      return { t: "applied", sandbox: now.sandbox, proof: "read_back" };
    }
    if (wasWritten(from, now.sandbox)) return { t: "moved" };
    const moved = hasMoved(from, now.sandbox);
    if (ending.t === "refused" && !moved) {
      return unanswered === undefined
        ? { t: "refused", error: patchIsWrong(ending.error) }
        : unknown(ws, write, ending.error);
    }
    if (moved) {
      // The cluster itself wrote, as its controller does into the status. What we sent before tests what is past: it cannot land.
      unanswered = undefined;
      const answer = await stillHolds(write, now.sandbox);
      if (answer !== "holds") return answer;
    }
    from = now.sandbox;
    if (within.signal.aborted) return unknown(ws, write, unanswered);
  }
}

async function send(ws: Handle, write: ModeWrite, reading: SandboxReading) {
  using time = writeDeadline(ws.deps);
  const { mode, writtenBy, epoch, volumeClaimUids, refresh } = write;
  const wish = { reading, mode, writtenBy, epoch, volumeClaimUids, refresh, now: ws.deps.clock.now() };
  return await ws.deps.cluster.setMode(wish, time);
}

/** An unanswered patch can land while what it tests still stands. */
function noteUnresolved(ws: Handle, { mode }: ModeWrite, from: SandboxReading): void {
  if (mode === "Suspended") ws.unresolved.suspendSentFrom(from);
  else if (from.mode === "Suspended") ws.unresolved.wakeSentFrom(from);
  else ws.unresolved.stampSentFrom(from);
}

type ReadBack =
  | { readonly t: "read"; readonly sandbox: SandboxReading }
  | { readonly t: "unread"; readonly error: HoldfastError };

async function readBack(ws: Handle, within: Deadline, attempt: number): Promise<ReadBack> {
  let sandbox: SandboxReading | undefined;
  try {
    if (attempt > 0) await pauseBeforeRetry(ws.deps, attempt, within);
    sandbox = await readOwn(ws, within);
  } catch (error) {
    if (hasReason(error, "WORKSPACE_REPLACED")) throw error;
    return { t: "unread", error: asHoldfastError(error) };
  }
  if (!sandbox) throw vanished(ws);
  return { t: "read", sandbox };
}

async function stillHolds(
  { stillHolds: ask }: ModeWrite,
  now: SandboxReading,
): Promise<"holds" | Extract<ModeOutcome, { readonly t: "moved" | "refused" }>> {
  try {
    return ask === undefined || (await ask(now)) ? "holds" : { t: "moved" };
  } catch (error) {
    return { t: "refused", error: asHoldfastError(error) };
  }
}

/** Nothing stands that a patch of ours, answered or not, could change. */
function vanished(ws: Handle, cause?: unknown): HoldfastError {
  ws.commit({ t: "vanished", why: "absent" });
  return workspaceNotFound(ws, cause);
}

function asHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  return new HoldfastError("CLUSTER_UNAVAILABLE", {
    message: "The object could not be read again before the deadline, so nothing more was sent.",
    cause: error,
  });
}

function unknown(ws: Handle, write: ModeWrite, cause: unknown): ModeOutcome {
  const epoch = write.epoch === undefined ? {} : { epoch: String(write.epoch) };
  return {
    t: "unknown",
    error: writeUnresolved(
      `It is not known whether workspace ${ws.id} was asked to be ${write.mode}: the cluster did not answer, and the request could not be read back in time. Read the workspace, then call again.`,
      { written_by: write.writtenBy, mode: write.mode, ...epoch },
      cause,
    ),
  };
}

/** A 422 on an object that did not move: the patch itself is wrong. */
function patchIsWrong(error: HoldfastError): HoldfastError {
  return error.reason === "CLUSTER_WRITE_REFUSED"
    ? error
    : new HoldfastError("CLUSTER_WRITE_REFUSED", { message: error.message, metadata: error.metadata, cause: error });
}
