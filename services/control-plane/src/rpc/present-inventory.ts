import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  OperatingMode,
  type TemplateSummarySchema,
  type WatchWorkspacesResponseSchema,
  type WorkspaceSummarySchema,
} from "@holdfast/api/holdfast/v1/inventory_pb";
import type { TemplateSummary, WorkspaceNews, WorkspaceSummary } from "@holdfast/workspace";
import { timestampOf } from "./protobuf-time.ts";
import { bookmarkOf } from "./watch-bookmark.ts";

export function presentSummary(summary: WorkspaceSummary): MessageInitShape<typeof WorkspaceSummarySchema> {
  return {
    workspaceId: summary.id,
    mode: summary.mode === "Running" ? OperatingMode.RUNNING : OperatingMode.SUSPENDED,
    template: summary.template,
    createdAt: timestampOf(summary.createdAt.getTime()),
    ...(summary.modeChangedAt && { modeChangedAt: timestampOf(summary.modeChangedAt.getTime()) }),
    ...(summary.holderEpoch !== undefined && { holderEpoch: BigInt(summary.holderEpoch) }),
    sandboxUid: summary.sandboxUid,
  };
}

export function presentTemplate(template: TemplateSummary): MessageInitShape<typeof TemplateSummarySchema> {
  return {
    name: template.name,
    usable: template.problem === undefined,
    problem: template.problem ?? "",
    default: template.isDefault,
    image: template.image ?? "",
  };
}

/** `under`: what a bookmark is bound to. */
export function presentNews(
  news: WorkspaceNews,
  under: object,
): MessageInitShape<typeof WatchWorkspacesResponseSchema> {
  if (news.t === "bookmark") return { event: { case: "bookmark", value: bookmarkOf(news.version, under) } };
  if (news.t === "restarted") return { event: { case: "restarted", value: {} } };
  return { event: { case: news.t, value: presentSummary(news.workspace) } };
}
