import type { WorkspaceService } from "@holdfast/api/holdfast/v1/workspace_pb";
import { flushTimeoutDefaultMs } from "@holdfast/contract";
import { quiesceReportOf } from "@holdfast/workspace";
import type { WorkspaceRegistry } from "../registry.ts";
import type { Watching } from "../watching.ts";
import { flushLetGo, quiesceLetGo } from "./disk-let-go.ts";
import { parseEpoch } from "./parse-fencing.ts";
import {
  parseDestroy,
  parseOpen,
  parseQuiesceOrder,
  parseResume,
  parseSuspend,
  parseWorkspaceId,
} from "./parse-workspace.ts";
import { presentQuiesce, presentStopReports, presentWorkspace } from "./present-workspace.ts";
import { durationMs, durationOf } from "./protobuf-time.ts";
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

    async refreshWorkspace(request, { signal }) {
      const view = await registry.refresh(parseWorkspaceId(request.workspaceId), signal);
      return { workspace: presentWorkspace(view) };
    },

    async quiesceWorkspace(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const order = parseQuiesceOrder(request);
      const epoch = parseEpoch(request.epoch, context);
      context.endsInDrainWith(() => quiesceLetGo(order));
      const result = await registry.ask(id, signal, (workspace) => workspace.diskUnder(epoch).quiesce(order, signal));
      return { quiesce: presentQuiesce(quiesceReportOf(result)), holdId: result.holdId ?? "" };
    },

    async releaseWorkspace(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const epoch = parseEpoch(request.epoch, context);
      await registry.ask(id, signal, (workspace) => workspace.diskUnder(epoch).release(request.holdId, signal));
      return {};
    },

    async flushWorkspace(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const epoch = parseEpoch(request.epoch, context);
      const timeoutMs = request.timeout ? durationMs(request.timeout) : flushTimeoutDefaultMs;
      context.endsInDrainWith(flushLetGo);
      const { tookMs } = await registry.ask(id, signal, (workspace) =>
        workspace.diskUnder(epoch).flush(timeoutMs, signal),
      );
      return { took: durationOf(tookMs) };
    },

    watchWorkspace: (request, context) => watchWorkspace(watching, request, context),
  };
}
