import { HoldfastError } from "@holdfast/errors";
import type { SandboxReading } from "./ports/cluster.ts";
import type { Handle } from "./state/handle.ts";
import type { GoneWhy } from "./state/workspace-state.ts";

/**
 * How a suspension was noticed: before anything was dialled, by a failing call, during a start, because a suspend overtook it, or by
 * what it was attached to, which a suspend let go.
 */
export type NoticedBy = "ADMISSION" | "TRANSPORT" | "START" | "PREEMPTED" | "RELEASED";

export function workspaceSuspended(ws: Handle, noticedBy: NoticedBy, cause?: unknown): HoldfastError {
  const what = {
    ADMISSION: "is suspended or being suspended, so this call was not sent",
    TRANSPORT: "was suspended while this call was using it",
    START: "was suspended by somebody else while it was being started",
    PREEMPTED: "is being suspended here, which ended this start",
    RELEASED: "is being suspended, which ended this attachment",
  }[noticedBy];
  return new HoldfastError("WORKSPACE_SUSPENDED", {
    message: `Workspace ${ws.id} ${what}. Its disk is kept. Resume it, then call again.`,
    metadata: { noticed_by: noticedBy },
    cause,
  });
}

export function workspaceDeleting(ws: Handle, cause?: unknown): HoldfastError {
  return new HoldfastError("WORKSPACE_DELETING", {
    message: `Workspace ${ws.id} is being deleted with its disk. ${cause === undefined ? "Nothing was sent" : "This call ended with it"}. It can be created anew once it is gone.`,
    cause,
  });
}

export function workspaceNotFound(ws: Handle, cause?: unknown): HoldfastError {
  return new HoldfastError("WORKSPACE_NOT_FOUND", {
    message: `Workspace ${ws.id} does not exist. Nothing was changed. Open it to create it.`,
    cause,
  });
}

export function workspaceNotReady(ws: Handle, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError("WORKSPACE_NOT_READY", {
    message: `Workspace ${ws.id} cannot be used: ${why}. Nothing was started.`,
    metadata: { why },
    cause,
  });
}

/** L33: the name holds another object than the one this handle stands for. */
export function workspaceReplaced(ws: Handle, expected: string, found: SandboxReading | undefined): HoldfastError {
  const actual = found?.uid;
  return new HoldfastError("WORKSPACE_REPLACED", {
    message:
      actual === undefined
        ? `Workspace ${ws.id} (uid ${expected}) was deleted by somebody. Nothing was sent to another one.`
        : `Workspace ${ws.id} (uid ${expected}) was deleted and created again (uid ${actual}). Nothing was sent to the new one. Open it to use it.`,
    metadata: { field: "sandbox_uid", expected, actual: actual ?? "" },
  });
}

/** Nobody said whether a write landed, and the deadline ended before it could be proved. */
export function writeUnresolved(message: string, metadata: Record<string, string>, cause: unknown): HoldfastError {
  return new HoldfastError("CLUSTER_UNAVAILABLE", { message, metadata, cause });
}

/** The handle ended before this call's turn: nothing of the call was done, and a new handle may take it (isHandleOver). */
export function handleOver(ws: Handle, why: GoneWhy): HoldfastError {
  return overWords(ws, why).withMetadata({ handle: "over" });
}

/** True for the refusal of a call whose turn came after its handle had ended: it may be made again on a new handle. */
export function isHandleOver(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && error.metadata.handle === "over";
}

function overWords(ws: Handle, why: GoneWhy): HoldfastError {
  if (why === "deleted" || why === "absent") return workspaceNotFound(ws);
  if (why === "replaced") return workspaceReplaced(ws, ws.known?.sandboxUid ?? "", undefined);
  const words = { start_failed: "its start failed", delete_refused: "its delete was refused" }[why];
  return workspaceNotReady(ws, `it was let go here because ${words}; call again`);
}

/** A refusal of a call of which nothing was sent, by what the handle said: that may have been learned before the call came. */
export function notSent(refusal: HoldfastError): HoldfastError {
  return refusal.withMetadata({ sent: "false" });
}

/** True for such a refusal: whoever can look afresh may find that it does not hold, and make the call again. */
export function isNotSent(error: unknown): error is HoldfastError {
  return error instanceof HoldfastError && error.metadata.sent === "false";
}

/** Why a data-plane call is not admitted in this state. */
export function admissionRefusal(ws: Handle): HoldfastError {
  const { state } = ws;
  switch (state.t) {
    case "closing":
    case "suspending":
    case "suspended":
      return notSent(workspaceSuspended(ws, "ADMISSION"));
    case "deleting":
      return notSent(workspaceDeleting(ws));
    case "gone":
      return handleOver(ws, state.why);
    case "unbound":
      return workspaceNotReady(ws, state.why);
    case "opening":
    case "resuming":
    case "active":
      return workspaceNotReady(ws, "it is being started");
  }
}
