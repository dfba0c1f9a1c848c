import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type InventoryService,
  type ListWorkspacesRequest,
  OperatingMode,
  type WorkspaceSummarySchema,
} from "@holdfast/api/holdfast/v1/inventory_pb";
import { pageSizeDefault } from "@holdfast/contract";
import type { ListWorkspacesWish, WorkspaceSummary } from "@holdfast/workspace";
import type { WorkspaceInventory } from "../inventory.ts";
import { continueTokenOf, pageTokenOf } from "./page-token.ts";
import { timestampMs, timestampOf } from "./protobuf-time.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.InventoryService`: parse, call, present. */
export function inventoryService(inventory: WorkspaceInventory): ServiceImplementation<typeof InventoryService> {
  return {
    async listWorkspaces(request, { signal }) {
      const filter = parseFilter(request);
      const page = await inventory.list(
        {
          ...filter,
          limit: request.pageSize || pageSizeDefault,
          continueToken: continueTokenOf(request.pageToken, filter),
        },
        signal,
      );
      return {
        workspaces: page.workspaces.map(presentSummary),
        nextPageToken: pageTokenOf(page.nextContinue, filter),
      };
    },
  };
}

const modes = {
  [OperatingMode.UNSPECIFIED]: undefined,
  [OperatingMode.RUNNING]: "Running",
  [OperatingMode.SUSPENDED]: "Suspended",
} as const;

function parseFilter(request: ListWorkspacesRequest): Omit<ListWorkspacesWish, "limit" | "continueToken"> {
  return {
    mode: modes[request.mode],
    template: request.template || undefined,
    idPrefix: request.workspaceIdPrefix || undefined,
    modeChangedBefore: request.modeChangedBefore && timestampMs(request.modeChangedBefore),
  };
}

function presentSummary(summary: WorkspaceSummary): MessageInitShape<typeof WorkspaceSummarySchema> {
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
