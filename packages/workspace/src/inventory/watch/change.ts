import type { WorkspaceSummary } from "../../view.ts";

/** One change of the inventory, in the cluster's order. */
export interface Change {
  readonly version: string;
  /** `unknown`: heard from before this process looked. */
  readonly before: WorkspaceSummary | "absent" | "unknown";
  /** Undefined: it is gone. */
  readonly after: WorkspaceSummary | undefined;
  /** The last that was seen of it. */
  readonly last: WorkspaceSummary;
}

/** Which workspaces a watcher wants to hear of. */
export interface WatchFilter {
  readonly template?: string | undefined;
  readonly idPrefix?: string | undefined;
}

/** What a watcher hears. */
export type WorkspaceNews =
  | { readonly t: "added"; readonly workspace: WorkspaceSummary }
  | { readonly t: "changed"; readonly workspace: WorkspaceSummary }
  | { readonly t: "removed"; readonly workspace: WorkspaceSummary }
  /** All up to here has been said. */
  | { readonly t: "bookmark"; readonly version: string }
  /** What follows is everything from the start; what is not said again is gone. */
  | { readonly t: "restarted" };

export function isWatched({ template, idPrefix }: WatchFilter, workspace: WorkspaceSummary): boolean {
  if (template !== undefined && workspace.template !== template) return false;
  return idPrefix === undefined || workspace.id.startsWith(idPrefix);
}

/**
 * What a change means to a watcher: one that enters its filter is added, one that leaves it is removed. Where it is not known whether
 * the watcher ever heard of one that is outside now, it is said to be removed: a removal too many harms nobody, a ghost does.
 */
export function newsOf({ before, after, last }: Change, filter: WatchFilter): WorkspaceNews | undefined {
  const wasIn = typeof before === "object" ? isWatched(filter, before) : before === "unknown";
  if (after !== undefined && isWatched(filter, after)) return { t: wasIn ? "changed" : "added", workspace: after };
  if (!wasIn) return undefined;
  if (typeof before === "object") return { t: "removed", workspace: after === undefined ? last : before };
  const { idPrefix } = filter;
  return isWatched({ idPrefix }, last) ? { t: "removed", workspace: last } : undefined;
}
