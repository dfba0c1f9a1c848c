import { create } from "@bufbuild/protobuf";
import {
  type ExecuteResponse,
  ExecuteResponseSchema,
  type ExecutionExited,
  ExecutionExitedSchema,
  GapReason,
  OutputStream,
} from "@holdfast/api/holdfast/v1/execution_pb";
import { outputChunkMaxBytes } from "@holdfast/contract";
import type { ExecutionEvent, ExecutionExit } from "@holdfast/workspace";
import { durationOf } from "./protobuf-time.ts";

/** One event as callers get it: one response, or several where a piece of output is larger than a chunk may be. */
export function* presentExecutionEvent(event: ExecutionEvent): Generator<ExecuteResponse> {
  switch (event.t) {
    case "started": {
      const { executionId, bootId, attached } = event;
      yield create(ExecuteResponseSchema, { event: { case: "started", value: { executionId, bootId, attached } } });
      return;
    }
    case "output": {
      const stream = event.stream === "stdout" ? OutputStream.STDOUT : OutputStream.STDERR;
      for (let at = 0; at < event.data.byteLength; at += outputChunkMaxBytes) {
        const data = event.data.subarray(at, at + outputChunkMaxBytes);
        const offset = BigInt(event.offset + at);
        yield create(ExecuteResponseSchema, { event: { case: "output", value: { stream, offset, data } } });
      }
      return;
    }
    case "gap": {
      const reason = event.reason === "max_output" ? GapReason.MAX_OUTPUT : GapReason.DROPPED;
      const value = { from: BigInt(event.from), to: BigInt(event.to), reason };
      yield create(ExecuteResponseSchema, { event: { case: "gap", value } });
      return;
    }
    case "exited":
      yield create(ExecuteResponseSchema, { event: { case: "exited", value: presentExit(event.exit) } });
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
