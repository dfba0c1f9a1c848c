import type { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import type { WorkspaceRegistry } from "../registry.ts";
import { parseDestroy, parseOpen, parseResume, parseSuspend, parseWorkspaceId } from "./parse-workspace.ts";
import { presentFlush, presentWorkspace } from "./present-workspace.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.WorkspaceService`: parse, call, present. */
export function workspaceService(registry: WorkspaceRegistry): ServiceImplementation<typeof WorkspaceService> {
  return {
    async openWorkspace(request, { signal }) {
      const view = await registry.open(parseWorkspaceId(request.workspaceId), parseOpen(request), signal);
      return { workspace: presentWorkspace(view) };
    },

    async getWorkspace(request, { signal }) {
      const { view, health } = await registry.read(
        parseWorkspaceId(request.workspaceId),
        request.includeHealth,
        signal,
      );
      return { workspace: presentWorkspace(view, health) };
    },

    async suspendWorkspace(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const { view, flush } = await registry.suspend(id, parseSuspend(request), signal);
      return { workspace: presentWorkspace(view), flush: presentFlush(flush) };
    },

    async resumeWorkspace(request, { signal }) {
      const view = await registry.resume(parseWorkspaceId(request.workspaceId), parseResume(request), signal);
      return { workspace: presentWorkspace(view) };
    },

    async destroyWorkspace(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const { view, flush } = await registry.destroy(id, parseDestroy(request), signal);
      return { ...(view && { workspace: presentWorkspace(view) }), flush: presentFlush(flush) };
    },

    async closeWorkspace(request) {
      return { wasOpen: registry.close(parseWorkspaceId(request.workspaceId)) };
    },
  };
}
