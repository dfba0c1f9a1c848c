import { Leftovers, OnDisconnect } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import type { ExecutionWish } from "@holdfast/workspace";

/** The part of a start that describes the command, as the guest takes it. */
export function startOf(wish: ExecutionWish) {
  return {
    command: {
      command: wish.command,
      args: [...wish.args],
      cwd: wish.cwd ?? "",
      env: { ...wish.env },
      ...(wish.stdin === undefined ? {} : { stdin: wish.stdin }),
      streamedStdin: wish.streamedStdin ?? false,
      ...(wish.timeoutMs === undefined ? {} : { timeout: durationOf(wish.timeoutMs) }),
    },
    retainOutput: wish.retainOutput,
    onDisconnect: wish.onDisconnect === "cancel" ? OnDisconnect.CANCEL : OnDisconnect.DETACH,
    leftovers: wish.leftovers === "kill" ? Leftovers.KILL : Leftovers.KEEP,
    ...(wish.drainMs === undefined ? {} : { drain: durationOf(wish.drainMs) }),
  };
}

/** As protobuf has it. */
export function durationOf(ms: number): { readonly seconds: bigint; readonly nanos: number } {
  const seconds = Math.floor(ms / 1000);
  return { seconds: BigInt(seconds), nanos: Math.floor((ms - seconds * 1000) * 1_000_000) };
}
