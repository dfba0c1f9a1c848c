import { type WorkspaceId, workspaceIdOf } from "@holdfast/contract";
import type { SandboxNews } from "../../ports/cluster.ts";
import type { WorkspaceSummary } from "../../view.ts";
import { inventorySummaryOf, isSameSummary } from "../summary.ts";
import type { Change } from "./change.ts";

/** The inventory as it was last seen: summaries only, never objects. */
export class SummaryCache {
  #workspaces = new Map<WorkspaceId, WorkspaceSummary>();
  /** Shared by everyone who asks before the next change. */
  #snapshot: readonly WorkspaceSummary[] | undefined;

  get size(): number {
    return this.#workspaces.size;
  }

  snapshot(): readonly WorkspaceSummary[] {
    this.#snapshot ??= [...this.#workspaces.values()];
    return this.#snapshot;
  }

  /** Takes what the watch says; undefined when nothing that a caller sees has changed. */
  take(news: SandboxNews): Change | undefined {
    const { version } = news;
    if (news.t === "stands") {
      const summary = inventorySummaryOf(news.sandbox);
      return summary ? this.#put(summary, version) : this.#drop(news.sandbox.name, undefined, version);
    }
    if (news.t !== "gone") return undefined;
    return this.#drop(news.name, news.last && inventorySummaryOf(news.last), version);
  }

  #put(workspace: WorkspaceSummary, version: string): Change | undefined {
    const before = this.#workspaces.get(workspace.id);
    if (before && isSameSummary(before, workspace)) return undefined;
    this.#workspaces.set(workspace.id, workspace);
    this.#snapshot = undefined;
    return { version, before: before ?? "absent", after: workspace, last: workspace };
  }

  #drop(name: string, last: WorkspaceSummary | undefined, version: string): Change | undefined {
    const id = workspaceIdOf(name);
    const before = id && this.#workspaces.get(id);
    if (!before) return undefined;
    this.#workspaces.delete(id);
    this.#snapshot = undefined;
    return { version, before, after: undefined, last: last ?? before };
  }

  /** Takes a whole list, and says what is different from before: what vanished first, so that no ghost is left. */
  replace(listed: Map<WorkspaceId, WorkspaceSummary>, version: string): Change[] {
    const old = this.#workspaces;
    this.#workspaces = listed;
    this.#snapshot = undefined;
    const changes: Change[] = [];
    for (const [id, before] of old) {
      if (listed.get(id)?.sandboxUid === before.sandboxUid) continue;
      changes.push({ version, before, after: undefined, last: before });
    }
    for (const [id, after] of listed) {
      const before = old.get(id);
      if (before === undefined || before.sandboxUid !== after.sandboxUid) {
        changes.push({ version, before: "absent", after, last: after });
      } else if (!isSameSummary(before, after)) changes.push({ version, before, after, last: after });
    }
    return changes;
  }
}
