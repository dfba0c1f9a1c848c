import { create } from "@bufbuild/protobuf";
import {
  type ExecuteResponse,
  type Execution,
  type ExecutionExited,
  ExecutionExitedSchema,
  ExecutionGapSchema,
  ExecutionOutputSchema,
  ExecutionSchema,
  ExecutionStartedSchema,
  ExecutionState,
  GapReason,
  OutputStream,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { outputChunkMaxBytes } from "@holdfast/contract";
import type { ExecutionEvent, ExecutionExit, GuestExecution } from "@holdfast/workspace";
import { durationOf, timestampOf } from "./protobuf-time.ts";

/** An event as each of the streams of a command sends it. */
export type PresentedEvent = Pick<ExecuteResponse, "event">;

/** One event as callers get it: one response, or several where a piece of output is larger than a chunk may be. */
export function* presentExecutionEvent(event: ExecutionEvent): Generator<PresentedEvent> {
  switch (event.t) {
    case "started": {
      const { executionId, bootId, attached } = event;
      const value = create(ExecutionStartedSchema, { executionId, bootId, attached });
      yield { event: { case: "started", value } };
      return;
    }
    case "output": {
      const stream = event.stream === "stdout" ? OutputStream.STDOUT : OutputStream.STDERR;
      for (let at = 0; at < event.data.byteLength; at += outputChunkMaxBytes) {
        const data = event.data.subarray(at, at + outputChunkMaxBytes);
        const offset = BigInt(event.offset + at);
        yield { event: { case: "output", value: create(ExecutionOutputSchema, { stream, offset, data }) } };
      }
      return;
    }
    case "gap": {
      const reason = event.reason === "max_output" ? GapReason.MAX_OUTPUT : GapReason.DROPPED;
      const value = create(ExecutionGapSchema, { from: BigInt(event.from), to: BigInt(event.to), reason });
      yield { event: { case: "gap", value } };
      return;
    }
    case "exited":
      yield { event: { case: "exited", value: presentExit(event.exit) } };
  }
}

/** A command's end. */
export function presentExit(exit: ExecutionExit): ExecutionExited {
  return create(ExecutionExitedSchema, {
    status:
      exit.status.t === "code"
        ? { case: "exitCode", value: exit.status.code }
        : { case: "signal", value: exit.status.signal },
    timedOut: exit.timedOut,
    leftovers: exit.leftovers.map(({ pid, name }) => ({ pid, name })),
    outputBytes: BigInt(exit.outputBytes),
    ran: durationOf(exit.ranMs),
    message: exit.message ?? "",
  });
}

/** A command as it stands. */
export function presentExecution(execution: GuestExecution): Execution {
  const { executionId, command, args, startedAtMs, outputBytes, keptFrom, retainOutput, exit, unconfirmed, pid } =
    execution;
  const ended = unconfirmed ? ExecutionState.UNCONFIRMED : ExecutionState.EXITED;
  return create(ExecutionSchema, {
    executionId,
    state: exit === undefined && !unconfirmed ? ExecutionState.RUNNING : ended,
    command,
    args: [...args],
    startedAt: timestampOf(startedAtMs),
    outputBytes: BigInt(outputBytes),
    keptFrom: BigInt(keptFrom),
    retainOutput,
    ...(exit && { exited: presentExit(exit) }),
    pid,
  });
}
