import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import { type ListWorkspacesWish, listWorkspaces, type WorkspaceDeps } from "@holdfast/workspace";

/** How long a page may take: a request that fails once may be tried again. */
const listTimeoutMs = 2 * clusterRequestTimeoutMs;

/** Workspaces as objects on the cluster. Wakes nothing and opens nothing. */
export class WorkspaceInventory {
  readonly #deps: WorkspaceDeps;

  constructor(deps: WorkspaceDeps) {
    this.#deps = deps;
  }

  async list(wish: ListWorkspacesWish, caller: AbortSignal): ReturnType<typeof listWorkspaces> {
    using within = new Deadline(this.#deps.clock, listTimeoutMs, caller);
    try {
      return await listWorkspaces(this.#deps, wish, within);
    } catch (error) {
      if (!within.expired || error instanceof HoldfastError) throw error;
      throw new HoldfastError("CLUSTER_UNAVAILABLE", {
        message: `The workspaces were not listed: the cluster did not answer within ${listTimeoutMs} ms. Try again.`,
        metadata: { budget_ms: String(listTimeoutMs) },
        cause: error,
      });
    }
  }
}
