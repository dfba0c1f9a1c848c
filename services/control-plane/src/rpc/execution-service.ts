import type { ExecuteInteractiveRequest, ExecutionService } from "@holdfast/api/holdfast/v1/execution_pb";
import { HoldfastError } from "@holdfast/errors";
import type { CommandInput, ExecutionEvent } from "@holdfast/workspace";
import type { WorkspaceRegistry } from "../registry.ts";
import { CollectedOutput } from "./collected-output.ts";
import { ExecutionProgress, FollowerProgress } from "./execution-progress.ts";
import { takeFirst } from "./first-request.ts";
import { invalidRequest } from "./interceptors/request-validation.ts";
import {
  parseAttachExecution,
  parseCancelExecution,
  parseCommandInput,
  parseExecute,
  parseExecutionId,
  parseRunCommand,
  parseSignalExecution,
} from "./parse-execution.ts";
import { parseEpoch } from "./parse-fencing.ts";
import { parseWorkspaceId } from "./parse-workspace.ts";
import { type PresentedEvent, presentExecution, presentExecutionEvent, presentExit } from "./present-execution.ts";
import type { ServiceImplementation } from "./service-implementation.ts";

/** `holdfast.v1.ExecutionService`: parse, call, present. */
export function executionService(registry: WorkspaceRegistry): ServiceImplementation<typeof ExecutionService> {
  return {
    async *execute(request, context) {
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseExecute(request);
      const progress = new ExecutionProgress(wish);
      context.endsInDrainWith(() => progress.detachedByDrain());
      yield* presented(registry.execute(id, wish, context.signal, parseEpoch(request.epoch, context)), progress);
    },

    async runCommand(request, context) {
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

    async *executeInteractive(requests, context) {
      const { signal } = context;
      const { first, rest } = await takeFirst(requests);
      if (first.request.case !== "start") throw invalidRequest([{ field: "start", description: "must come first" }]);
      const start = first.request.value;
      const id = parseWorkspaceId(start.workspaceId);
      const wish = parseExecute(start);
      const epoch = parseEpoch(start.epoch, context);
      const progress = new ExecutionProgress(wish);
      context.endsInDrainWith(() => progress.detachedByDrain());
      const input = inputOf(rest);
      const events = registry.stream(id, signal, (workspace) =>
        workspace.executionsUnder(epoch, "ExecuteInteractive").interactive(wish, input, signal),
      );
      yield* presented(events, progress);
    },

    async *attachExecution(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const wish = parseAttachExecution(request);
      const progress = new FollowerProgress(wish);
      context.endsInDrainWith(() => progress.detachedByDrain());
      const events = registry.stream(id, signal, (workspace) =>
        workspace.executionsUnder(undefined, "AttachExecution").attach(wish, signal),
      );
      yield* presented(events, progress);
    },

    async getExecution(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const executionId = parseExecutionId(request.executionId);
      const { execution, bootId } = await registry.ask(id, signal, (workspace) =>
        workspace.executionsUnder(undefined, "GetExecution").get(executionId, signal),
      );
      return { execution: presentExecution(execution), bootId };
    },

    async listExecutions(request, { signal }) {
      const id = parseWorkspaceId(request.workspaceId);
      const { executions, bootId } = await registry.ask(id, signal, (workspace) =>
        workspace.executionsUnder(undefined, "ListExecutions").list(signal),
      );
      return { executions: executions.map(presentExecution), bootId };
    },

    async signalExecution(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const order = parseSignalExecution(request);
      const epoch = parseEpoch(request.epoch, context);
      context.endsInDrainWith(() => signalLetGo(request.executionId, request.signal));
      return await registry.ask(id, signal, (workspace) =>
        workspace.executionsUnder(epoch, "SignalExecution").signal(order, signal),
      );
    },

    async cancelExecution(request, context) {
      const { signal } = context;
      const id = parseWorkspaceId(request.workspaceId);
      const order = parseCancelExecution(request);
      const epoch = parseEpoch(request.epoch, context);
      context.endsInDrainWith(() => cancelLetGo(request.executionId));
      return await registry.ask(id, signal, (workspace) =>
        workspace.executionsUnder(epoch, "CancelExecution").cancel(order, signal),
      );
    },
  };
}

/** A command's events as its callers get them; how far they have got is kept. */
async function* presented(
  events: AsyncIterable<ExecutionEvent>,
  progress: { delivered(response: PresentedEvent): void },
): AsyncGenerator<PresentedEvent> {
  for await (const event of events) {
    for (const response of presentExecutionEvent(event)) {
      yield response;
      progress.delivered(response);
    }
  }
}

async function* inputOf(requests: AsyncIterable<ExecuteInteractiveRequest>): AsyncGenerator<CommandInput> {
  for await (const request of requests) yield parseCommandInput(request);
}

/** What a cancel ends with when the service drains before it was confirmed. */
function cancelLetGo(executionId: string): HoldfastError {
  return new HoldfastError("CANCELLATION_UNCONFIRMED", {
    message: `This process is stopping and let the call go before the end of execution ${executionId} was confirmed. It may have been asked to end. Cancel it again; another process, or this one when it is back, will serve it.`,
    metadata: { execution_id: executionId, why: "service_draining" },
  });
}

/** What a signal ends with likewise. Not to be repeated by itself: it would be sent twice. */
function signalLetGo(executionId: string, signal: string): HoldfastError {
  return new HoldfastError("EXECUTION_DETACHED", {
    message: `This process is stopping and let the call go before the guest had answered. Whether ${signal} was sent to execution ${executionId} is not known; the command was not ended by the service. Look at it before you signal again.`,
    metadata: { execution_id: executionId, why: "service_draining" },
  });
}
