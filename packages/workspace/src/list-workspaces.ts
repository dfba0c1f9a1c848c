import type { Deadline } from "@holdfast/async";
import type { WorkspaceDeps } from "./deps.ts";
import { inventorySummaryOf } from "./inventory/summary.ts";
import type { WorkspaceSummary } from "./view.ts";
import type { ListWorkspacesWish } from "./wishes.ts";

/**
 * A page of the namespace's workspaces, from their objects alone: one request, no pod read, nothing dialled. Only an object with the
 * name prefix *and* the template label is a workspace, so a page may be short. Throws PAGE_TOKEN_EXPIRED.
 */
export async function listWorkspaces(
  deps: WorkspaceDeps,
  wish: ListWorkspacesWish,
  within: Deadline,
): Promise<{ workspaces: WorkspaceSummary[]; nextContinue: string | undefined }> {
  const { limit, continueToken } = wish;
  const page = await deps.cluster.listSandboxes({ limit, continueToken }, within);
  const workspaces = page.sandboxes.flatMap((sandbox) => {
    const summary = inventorySummaryOf(sandbox);
    return summary && isWanted(summary, wish) ? [summary] : [];
  });
  return { workspaces, nextContinue: page.continueToken };
}

function isWanted(summary: WorkspaceSummary, wish: ListWorkspacesWish): boolean {
  const { mode, template, idPrefix, modeChangedBefore } = wish;
  if (mode !== undefined && summary.mode !== mode) return false;
  if (template !== undefined && summary.template !== template) return false;
  if (idPrefix !== undefined && !summary.id.startsWith(idPrefix)) return false;
  if (modeChangedBefore === undefined) return true;
  return summary.modeChangedAt !== undefined && summary.modeChangedAt.getTime() < modeChangedBefore;
}
