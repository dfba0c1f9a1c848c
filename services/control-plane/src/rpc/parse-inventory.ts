import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  type DeleteWorkspaceRequest,
  type InventoryServiceSuspendWorkspaceRequest,
  type ListWorkspacesRequest,
  OperatingMode,
  type WatchWorkspacesRequest,
} from "@holdfast/api/holdfast/v1/inventory_pb";
import { sandboxUidOf, stopTimeoutDefaultMs } from "@holdfast/contract";
import type { DestroyWish, ListWorkspacesWish, SuspendWish, WatchFilter } from "@holdfast/workspace";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { type Caller, parseStopFencing } from "./parse-fencing.ts";
import { durationMs, timestampMs } from "./protobuf-time.ts";

const modes = {
  [OperatingMode.UNSPECIFIED]: undefined,
  [OperatingMode.RUNNING]: "Running",
  [OperatingMode.SUSPENDED]: "Suspended",
} as const;

export function parseListFilter(request: ListWorkspacesRequest): Omit<ListWorkspacesWish, "limit" | "continueToken"> {
  return {
    mode: modes[request.mode],
    template: request.template || undefined,
    idPrefix: request.workspaceIdPrefix || undefined,
    modeChangedBefore: request.modeChangedBefore && timestampMs(request.modeChangedBefore),
  };
}

export function parseWatchFilter(request: WatchWorkspacesRequest): WatchFilter {
  return { template: request.template || undefined, idPrefix: request.workspaceIdPrefix || undefined };
}

/** By object no guest is asked, so what asks for one is refused rather than ignored, whatever it says. */
export function refuseGuestWishes(request: InventoryServiceSuspendWorkspaceRequest): void {
  const set = (["quiesce", "flush"] as const).filter((field) => request[field] !== undefined);
  if (set.length === 0) return;
  const description = "is not for a suspend by object, which asks no guest: OpenWorkspace, then SuspendWorkspace";
  throw invalidRequest(set.map((field) => ({ field, description })));
}

export function parseSuspendObject(
  request: InventoryServiceSuspendWorkspaceRequest,
  caller: Caller,
): Pick<SuspendWish, "stopTimeoutMs" | "fencing"> {
  return { stopTimeoutMs: parseStopTimeout(request), fencing: parseStopFencing(request, caller) };
}

function parseStopTimeout({ stopTimeout }: { readonly stopTimeout?: Duration | undefined }): number {
  return stopTimeout ? durationMs(stopTimeout) : stopTimeoutDefaultMs;
}

export function parseDelete(
  request: DeleteWorkspaceRequest,
  caller: Caller,
): Pick<DestroyWish, "expectedSandboxUid" | "stopTimeoutMs" | "fencing"> {
  return {
    fencing: parseStopFencing(request, caller),
    expectedSandboxUid: request.expectedSandboxUid ? sandboxUidOf(request.expectedSandboxUid) : undefined,
    stopTimeoutMs: parseStopTimeout(request),
  };
}
