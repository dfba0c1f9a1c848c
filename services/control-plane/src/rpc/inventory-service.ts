import type { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { pageSizeDefault } from "@holdfast/contract";
import { watchStopped } from "@holdfast/workspace";
import type { WorkspaceInventory } from "../inventory.ts";
import type { WorkspaceRegistry } from "../registry.ts";
import { continueTokenOf, pageTokenOf } from "./page-token.ts";
import {
  parseDelete,
  parseListFilter,
  parseSuspendObject,
  parseWatchFilter,
  refuseGuestWishes,
} from "./parse-inventory.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { presentNews, presentSummary, presentTemplate } from "./present-inventory.ts";
import type { ServiceImplementation } from "./service-implementation.ts";
import { versionOfBookmark } from "./watch-bookmark.ts";

/** Page tokens of templates are bound to this, as those of workspaces to their filter. */
const allTemplates = { kind: "templates" };

/** `holdfast.v1.InventoryService`: parse, call, present. */
export function inventoryService(
  inventory: WorkspaceInventory,
  registry: WorkspaceRegistry,
): ServiceImplementation<typeof InventoryService> {
  return {
    async listWorkspaces(request, { signal }) {
      const filter = parseListFilter(request);
      const limit = request.pageSize || pageSizeDefault;
      const continueToken = continueTokenOf(request.pageToken, filter);
      const page = await inventory.list({ ...filter, limit, continueToken }, signal);
      return {
        workspaces: page.workspaces.map(presentSummary),
        nextPageToken: pageTokenOf(page.nextContinue, filter),
      };
    },

    async getWorkspaceSummary(request, { signal }) {
      const summary = await inventory.summary(parseWorkspaceId(request.workspaceId), signal);
      return { workspace: presentSummary(summary) };
    },

    async *watchWorkspaces(request, context) {
      const filter = parseWatchFilter(request);
      const under = { namespace: inventory.namespace, ...filter };
      const from = versionOfBookmark(request.bookmark, under);
      context.endsInDrainWith(watchStopped);
      for await (const news of inventory.watch(filter, from, context.signal)) yield presentNews(news, under);
    },

    async suspendWorkspace(request, context) {
      refuseGuestWishes(request);
      const id = parseWorkspaceId(request.workspaceId);
      const { summary } = await registry.suspendObject(id, parseSuspendObject(request, context), context.signal);
      return { ...(summary && { workspace: presentSummary(summary) }) };
    },

    async deleteWorkspace(request, context) {
      const id = parseWorkspaceId(request.workspaceId);
      return { deleted: await registry.deleteObject(id, parseDelete(request, context), context.signal) };
    },

    async listTemplates(request, { signal }) {
      const limit = request.pageSize || pageSizeDefault;
      const continueToken = continueTokenOf(request.pageToken, allTemplates);
      const page = await inventory.listTemplates({ limit, continueToken }, signal);
      return {
        templates: page.templates.map(presentTemplate),
        nextPageToken: pageTokenOf(page.nextContinue, allTemplates),
      };
    },
  };
}
