import { Deadline } from "@holdfast/async";
import { clusterRequestTimeoutMs, type WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import {
  type ListWish,
  type ListWorkspacesWish,
  listTemplates,
  listWorkspaces,
  readSummary,
  type WatchFilter,
  type WorkspaceDeps,
  type WorkspaceNews,
  WorkspaceWatches,
} from "@holdfast/workspace";

/** How long a page or an object may take: a request that fails once may be tried again. */
const readTimeoutMs = 2 * clusterRequestTimeoutMs;

/** Workspaces as objects on the cluster. Wakes nothing and opens nothing. */
export class WorkspaceInventory {
  readonly namespace: string;
  readonly #deps: WorkspaceDeps;
  readonly #watches: WorkspaceWatches;

  constructor(deps: WorkspaceDeps, namespace: string) {
    this.#deps = deps;
    this.namespace = namespace;
    this.#watches = new WorkspaceWatches(deps);
  }

  /** How many watch. */
  get watchers(): number {
    return this.#watches.size;
  }

  watch(filter: WatchFilter, from: string | undefined, caller: AbortSignal): AsyncGenerator<WorkspaceNews> {
    return this.#watches.watch(filter, from, caller);
  }

  /** Ends every watch, and the cluster's. */
  close(): Promise<void> {
    return this.#watches.close();
  }

  list(wish: ListWorkspacesWish, caller: AbortSignal): ReturnType<typeof listWorkspaces> {
    return this.#read("The workspaces were not listed", caller, (within) => listWorkspaces(this.#deps, wish, within));
  }

  listTemplates(wish: ListWish, caller: AbortSignal): ReturnType<typeof listTemplates> {
    return this.#read("The templates were not listed", caller, (within) => listTemplates(this.#deps, wish, within));
  }

  summary(id: WorkspaceId, caller: AbortSignal): ReturnType<typeof readSummary> {
    return this.#read(`Workspace ${id} was not read`, caller, (within) => readSummary(this.#deps, id, within));
  }

  async #read<Result>(
    failure: string,
    caller: AbortSignal,
    read: (within: Deadline) => Promise<Result>,
  ): Promise<Result> {
    using within = new Deadline(this.#deps.clock, readTimeoutMs, caller);
    try {
      return await read(within);
    } catch (error) {
      if (!within.expired || error instanceof HoldfastError) throw error;
      throw new HoldfastError("CLUSTER_UNAVAILABLE", {
        message: `${failure}: the cluster did not answer within ${readTimeoutMs} ms. Try again.`,
        metadata: { budget_ms: String(readTimeoutMs) },
        cause: error,
      });
    }
  }
}
