import type { Deadline } from "@holdfast/async";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceDeps } from "./deps.ts";
import type { WorkspaceSummary } from "./view.ts";
import type { ListWorkspacesWish } from "./wishes.ts";

/** A page of the namespace's workspaces, from their objects alone. Throws PAGE_TOKEN_EXPIRED. */
export function listWorkspaces(
  _deps: WorkspaceDeps,
  _wish: ListWorkspacesWish,
  _within: Deadline,
): Promise<{ workspaces: WorkspaceSummary[]; nextContinue: string | undefined }> {
  return Promise.reject(new HoldfastError("INTERNAL_ERROR", { message: "not built yet" }));
}
