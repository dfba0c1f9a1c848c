import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type QuiesceRequestSchema,
  type QuiesceResponse,
  QuiesceScope,
  type StoppedProcess as StoppedOnWire,
} from "@holdfast/api/holdfast/guest/v1/disk_pb";
import type { QuiesceOrder, QuiesceResult, StoppedProcess } from "@holdfast/workspace";
import { durationOf } from "./start-request.ts";

export function quiesceRequestOf({ graceMs, holdMs }: QuiesceOrder): MessageInitShape<typeof QuiesceRequestSchema> {
  return {
    ...(graceMs === undefined ? {} : { grace: durationOf(graceMs) }),
    ...(holdMs === undefined ? {} : { hold: durationOf(holdMs) }),
  };
}

export function quiesceResultOf(response: QuiesceResponse): QuiesceResult {
  const { rounds, stoppedCount, holdId } = response;
  return {
    // What is not known to be whole is told as the narrower one.
    scope: response.scope === QuiesceScope.PID_NAMESPACE ? "pid_namespace" : "owned_sessions",
    rounds,
    stoppedCount,
    stopped: response.stopped.map(stoppedOf),
    notReached: response.notReached.map(stoppedOf),
    holdId: holdId || undefined,
  };
}

function stoppedOf({ pid, name, lastSignal }: StoppedOnWire): StoppedProcess {
  return { pid: Number(pid), name, lastSignal };
}
