import type { InventoryService } from "@holdfast/api/holdfast/v1/inventory_pb";
import { pageSizeDefault } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceInventory } from "../inventory.ts";
import type { WorkspaceRegistry } from "../registry.ts";
import { continueTokenOf, pageTokenOf } from "./page-token.ts";
import { parseDelete, parseListFilter, parseStopTimeout, refuseGuestWishes } from "./parse-inventory.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { presentSummary, presentTemplate } from "./present-inventory.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

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

    async *watchWorkspaces() {
      throw new HoldfastError("FIELD_NOT_SERVED", { message: "WatchWorkspaces is not served yet." });
    },

    async suspendWorkspace(request, { signal }) {
      refuseGuestWishes(request);
      const id = parseWorkspaceId(request.workspaceId);
      const { summary } = await registry.suspendObject(id, parseStopTimeout(request), signal);
      return { ...(summary && { workspace: presentSummary(summary) }) };
    },

    async deleteWorkspace(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      return { deleted: await registry.deleteObject(id, parseDelete(request), signal) };
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
