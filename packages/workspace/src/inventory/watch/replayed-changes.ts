import type { WorkspaceId } from "@holdfast/contract";
import type { SandboxNews } from "../../ports/cluster.ts";
import type { WorkspaceSummary } from "../../view.ts";
import { inventorySummaryOf, isSameSummary } from "../summary.ts";
import type { Change } from "./change.ts";

/**
 * Changes that the cache has taken long ago, heard again for watchers that have not heard them. What was before the first of each
 * workspace is not known.
 */
export class ReplayedChanges {
  readonly #known = new Map<WorkspaceId, WorkspaceSummary | "absent">();

  /** The change; undefined when nothing that a caller sees has changed. */
  take(news: SandboxNews): Change | undefined {
    if (news.t !== "stands" && news.t !== "gone") return undefined;
    const object = news.t === "stands" ? news.sandbox : news.last;
    const last = object && inventorySummaryOf(object);
    if (!last) return undefined;
    const before = this.#known.get(last.id) ?? (news.t === "stands" && news.isNew ? "absent" : "unknown");
    const after = news.t === "stands" ? last : undefined;
    this.#known.set(last.id, after ?? "absent");
    if (after && typeof before === "object" && isSameSummary(before, after)) return undefined;
    return { version: news.version, before, after, last };
  }
}
