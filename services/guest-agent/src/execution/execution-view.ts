import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ExecutionSchema } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import type { Execution } from "./execution.ts";
import { exitedOf } from "./output-follower.ts";

/** A command as it is told: never its environment or input. Arguments beyond so many bytes are counted instead. */
export function executionOf(
  execution: Execution,
  argsMaxBytes = Number.POSITIVE_INFINITY,
): MessageInitShape<typeof ExecutionSchema> {
  const { wish, state, log } = execution;
  const args = argsWithin(wish.args, argsMaxBytes);
  return {
    executionId: wish.id,
    command: wish.command,
    args: [...args],
    argsOmitted: wish.args.length - args.length,
    startedAt: timestampFromMs(execution.startedAtMs),
    pid: BigInt(execution.pid),
    retainOutput: wish.retainOutput,
    outputBytes: BigInt(log.end),
    keptFrom: BigInt(log.start),
    unconfirmed: state.t === "unconfirmed",
    hasClient: execution.hasClient,
    ...(state.t === "ended" ? { exited: exitedOf(state.exit, log.end) } : {}),
  };
}

function argsWithin(args: readonly string[], maxBytes: number): readonly string[] {
  let bytes = 0;
  const end = args.findIndex((arg) => {
    bytes += Math.max(1, Buffer.byteLength(arg)); // An empty one is not for nothing.
    return bytes > maxBytes;
  });
  return end === -1 ? args : args.slice(0, end);
}
