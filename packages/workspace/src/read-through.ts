import type { WorkspaceId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceDeps } from "./deps.ts";
import type { WorkspaceView } from "./view.ts";

/** Reads a workspace that is not open here: no handle, no guest. Throws WORKSPACE_NOT_FOUND. */
export function readThrough(_deps: WorkspaceDeps, _id: WorkspaceId, _caller: AbortSignal): Promise<WorkspaceView> {
  return Promise.reject(new HoldfastError("INTERNAL_ERROR", { message: "not built yet" }));
}
