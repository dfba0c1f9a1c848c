import type { WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { Workspace } from "@holdfast/workspace";

/** A handle and how many calls are using it now. */
export interface Entry {
  readonly workspace: Workspace;
  calls: number;
  /** Somebody opened it, or uses it as one who had. Without it, it serves calls by object and goes with the last of them. */
  isOpen: boolean;
  /** Close was called; it is dropped once nothing of ours is under way, unless it is used again before. */
  letGo: boolean;
}

/**
 * What it says may not hold any more. Suspended, and not looked at again: a start is on its way that may find it woken by
 * somebody, or a call that is refused on its state. Suspending, or without a pod, and nobody waits for the end of that.
 */
export function maySayOldNews(entry: Entry): boolean {
  const { workspace } = entry;
  const isAsOnceSeen = workspace.state.t === "suspending" || workspace.state.t === "unbound";
  if (isAsOnceSeen) return !workspace.inTransition && !workspace.hasUnresolvedStop;
  return workspace.state.t === "suspended" && !mayBeOutlived(entry);
}

/** L35: what the handle last confirmed may be old news, and is no reason to refuse a call. */
export function notLookedAt(id: WorkspaceId): HoldfastError {
  return new HoldfastError("CLUSTER_UNAVAILABLE", {
    message: `The call was not carried out: workspace ${id} did not run when it was last seen, and whether it does now could not be read. Nothing was sent. Call again.`,
    metadata: { workspace_id: id },
  });
}

/** Somebody woke it, and another call is at work on the handle that does not know it yet. */
export function movedMeanwhile(id: WorkspaceId): HoldfastError {
  return new HoldfastError("WORKSPACE_NOT_READY", {
    message: `The call was not carried out: workspace ${id} was changed by somebody, and another call is at work on it here. Nothing was sent. Call again.`,
    metadata: { why: "another call is at work on it" },
  });
}

export function mayBeOutlived(entry: Entry): boolean {
  return saysStopped(entry) && entry.calls === 0 && !entry.workspace.inTransition;
}

export function saysStopped({ workspace }: Entry): boolean {
  const { t } = workspace.state;
  return t === "suspending" || t === "suspended" || t === "deleting";
}

/** Something of it is under way, also where its caller went away: it must not be forgotten. */
export function isAtWork({ workspace }: Entry): boolean {
  return workspace.inTransition || workspace.hasUnresolvedWrite;
}
