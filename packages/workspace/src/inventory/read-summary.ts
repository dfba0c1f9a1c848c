import type { Deadline } from "@holdfast/async";
import { sandboxNameOf, type WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceDeps } from "../deps.ts";
import type { WorkspaceSummary } from "../view.ts";
import { inventorySummaryOf } from "./summary.ts";

/** One workspace, from its object alone: one request. Throws WORKSPACE_NOT_FOUND, also for an object that is not of the inventory. */
export async function readSummary(deps: WorkspaceDeps, id: WorkspaceId, within: Deadline): Promise<WorkspaceSummary> {
  const name = sandboxNameOf(id);
  const sandbox = await deps.cluster.readSandbox(name, within);
  const summary = sandbox && inventorySummaryOf(sandbox);
  if (summary) return summary;
  const what = sandbox
    ? `A Sandbox ${name} stands, but it does not carry the template label, so it is not a workspace.`
    : `Workspace ${id} does not exist. Open it to create it.`;
  throw new HoldfastError("WORKSPACE_NOT_FOUND", { message: what, metadata: { workspace_id: id, sandbox: name } });
}
