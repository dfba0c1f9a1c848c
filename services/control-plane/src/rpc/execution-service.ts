import type { ExecuteRequest, ExecutionService, RunCommandRequest } from "@holdfast/api/holdfast/v1/execution_pb";
import { HoldfastError } from "@holdfast/errors";
import type { WorkspaceRegistry } from "../registry.ts";
import type { HandlerContext } from "./call-context.ts";
import { CollectedOutput } from "./collected-output.ts";
import { ExecutionProgress } from "./execution-progress.ts";
import { notServed } from "./not-served.ts";
import { parseExecute, parseRunCommand } from "./parse-execution.ts";
import { parseEpoch } from "./parse-fencing.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { presentExecutionEvent, presentExit } from "./present-execution.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.ExecutionService`: parse, call, present. */
export function executionService(registry: WorkspaceRegistry): ServiceImplementation<typeof ExecutionService> {
  return {
    async *execute(request: ExecuteRequest, context: HandlerContext) {
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseExecute(request);
      const progress = new ExecutionProgress(wish);
      context.endsInDrainWith(() => progress.detachedByDrain());
      const events = registry.execute(id, wish, context.signal, parseEpoch(request.epoch, context));
      for await (const event of events) {
        for (const response of presentExecutionEvent(event)) {
          yield response;
          progress.delivered(response);
        }
      }
    },

    async runCommand(request: RunCommandRequest, context: HandlerContext) {
      const id = parseWorkspaceId(request.workspaceId);
      const epoch = parseEpoch(request.epoch, context);
      const { wish, keepBytes } = parseRunCommand(request);
      const progress = new ExecutionProgress(wish);
      context.endsInDrainWith(() => progress.detachedByDrain());
      const output = new CollectedOutput(keepBytes);
      for await (const event of registry.execute(id, wish, context.signal, epoch)) {
        if (event.t === "started") progress.started();
        if (event.t === "output" || event.t === "gap") output.add(event);
        if (event.t === "exited") {
          return { executionId: wish.executionId, ...output.result(), exited: presentExit(event.exit) };
        }
      }
      throw new HoldfastError("INTERNAL_ERROR", {
        message: `The output of execution ${wish.executionId} ended without an exit; what became of the command is not known.`,
        metadata: { execution_id: wish.executionId },
      });
    },

    executeInteractive: () => notServed(),
    attachExecution: () => notServed(),
    getExecution: () => notServed(),
    listExecutions: () => notServed(),
    signalExecution: () => notServed(),
    cancelExecution: () => notServed(),
  };
}
