import type { Deadline } from "@holdfast/async";
import { stampTimeMs, workspaceIdOf } from "@holdfast/contract";
import type { WorkspaceDeps } from "./deps.ts";
import { holderEpochOf } from "./fence/holder-epoch.ts";
import type { SandboxReading } from "./ports/cluster.ts";
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
    const summary = summaryOf(sandbox);
    return summary && isWanted(summary, wish) ? [summary] : [];
  });
  return { workspaces, nextContinue: page.continueToken };
}

function summaryOf(sandbox: SandboxReading): WorkspaceSummary | undefined {
  const id = workspaceIdOf(sandbox.name);
  if (id === undefined || sandbox.template === undefined) return undefined;
  const epoch = holderEpochOf(sandbox.stamps.holderEpoch);
  return {
    id,
    mode: sandbox.mode,
    template: sandbox.template,
    createdAt: sandbox.createdAt,
    modeChangedAt: dateOf(sandbox.stamps.modeChangedAt),
    holderEpoch: epoch === "unreadable" ? undefined : epoch,
    sandboxUid: sandbox.uid,
  };
}

function isWanted(summary: WorkspaceSummary, wish: ListWorkspacesWish): boolean {
  const { mode, template, idPrefix, modeChangedBefore } = wish;
  if (mode !== undefined && summary.mode !== mode) return false;
  if (template !== undefined && summary.template !== template) return false;
  if (idPrefix !== undefined && !summary.id.startsWith(idPrefix)) return false;
  if (modeChangedBefore === undefined) return true;
  return summary.modeChangedAt !== undefined && summary.modeChangedAt.getTime() < modeChangedBefore;
}

/** A stamp that is no time was not written by this contract: it reads as absent. */
function dateOf(stamp: string | undefined): Date | undefined {
  const ms = stamp === undefined ? undefined : stampTimeMs(stamp);
  return ms === undefined ? undefined : new Date(ms);
}
