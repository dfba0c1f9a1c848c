import { randomUUID } from "node:crypto";
import type { WorkspaceId } from "@holdfast/contract";
import { hasReason } from "@holdfast/errors";
import { Chronicles, type WatchItem, type WorkspaceDeps, type WorkspaceView } from "@holdfast/workspace";
import { WorkspaceRegistry } from "./registry.ts";

/**
 * The handles of this process and those who watch workspaces, over one watch of the cluster: what it says reaches handles unasked (L37),
 * and watchers hear what handles come to. (docs/design/watching.md)
 */
export class Watching {
  readonly registry: WorkspaceRegistry;
  /** Names this process in cursors: those of another mean nothing here. */
  readonly process = randomUUID();
  readonly #chronicles: Chronicles;
  readonly #hearing: Disposable;

  constructor(deps: WorkspaceDeps) {
    const { cluster, clock } = deps;
    this.registry = new WorkspaceRegistry({
      ...deps,
      told: (id, news, view) => this.#chronicles.told(id, news, view),
    });
    this.#chronicles = new Chronicles({ cluster, clock, read: (id, signal) => this.#read(id, signal) });
    this.#hearing = cluster.hear((news) => void this.registry.heard(news));
  }

  /** How many watch a workspace. */
  get watchers(): number {
    return this.#chronicles.watchers;
  }

  watch(id: WorkspaceId, from: number | "elsewhere" | undefined, caller: AbortSignal): AsyncGenerator<WatchItem, void> {
    return this.#chronicles.watch(id, from, caller);
  }

  close(): void {
    this.#hearing[Symbol.dispose]();
    this.#chronicles.close();
    this.registry.closeAll();
  }

  async #read(id: WorkspaceId, signal: AbortSignal): Promise<WorkspaceView | undefined> {
    try {
      return (await this.registry.read(id, false, signal)).view;
    } catch (error) {
      if (hasReason(error, "WORKSPACE_NOT_FOUND")) return undefined;
      throw error;
    }
  }
}
