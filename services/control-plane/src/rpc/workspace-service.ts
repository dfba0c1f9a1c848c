import type { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import type { WorkspaceRegistry } from "../registry.ts";
import type { Watching } from "../watching.ts";
import { notServed } from "./not-served.ts";
import { parseDestroy, parseOpen, parseResume, parseSuspend, parseWorkspaceId } from "./parse-workspace.ts";
import { presentStopReports, presentWorkspace } from "./present-workspace.ts";
import type { ServiceImplementation } from "./service-implementation.ts";
import { watchWorkspace } from "./watch-workspace.ts";

/** `holdfast.v1.WorkspaceService`: parse, call, present. */
export function workspaceService(
  registry: WorkspaceRegistry,
  watching: Watching,
): ServiceImplementation<typeof WorkspaceService> {
  return {
    async openWorkspace(request, context) {
      const id = parseWorkspaceId(request.workspaceId);
      const view = await registry.open(id, parseOpen(request, context), context.signal);
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

    async suspendWorkspace(request, context) {
      const id = parseWorkspaceId(request.workspaceId);
      const { view, ...reports } = await registry.suspend(id, parseSuspend(request, context), context.signal);
      return { workspace: presentWorkspace(view), ...presentStopReports(reports) };
    },

    async resumeWorkspace(request, context) {
      const id = parseWorkspaceId(request.workspaceId);
      const view = await registry.resume(id, parseResume(request, context), context.signal);
      return { workspace: presentWorkspace(view) };
    },

    async destroyWorkspace(request, context) {
      const id = parseWorkspaceId(request.workspaceId);
      const { view, ...reports } = await registry.destroy(id, parseDestroy(request, context), context.signal);
      return { ...(view && { workspace: presentWorkspace(view) }), ...presentStopReports(reports) };
    },

    async closeWorkspace(request) {
      return { wasOpen: registry.close(parseWorkspaceId(request.workspaceId)) };
    },

    refreshWorkspace: () => notServed(),
    quiesceWorkspace: () => notServed(),
    releaseWorkspace: () => notServed(),
    flushWorkspace: () => notServed(),
    watchWorkspace: (request, context) => watchWorkspace(watching, request, context),
  };
}
