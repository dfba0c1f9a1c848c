import { randomUUID } from "node:crypto";
import {
  type ExecuteRequest,
  Leftovers,
  OnDisconnect,
  type RunCommandRequest,
} from "@holdfast/api/holdfast/v1/execution_pb";
import {
  type ExecutionId,
  isExecutionId,
  runCommandOutputMaxBytes,
  runCommandTimeoutDefaultMs,
} from "@holdfast/contract";
import type { ExecutionWish } from "@holdfast/workspace";
import { invalidRequest } from "./interceptors/request-validation.ts";
import { durationMs } from "./protobuf-time.ts";

/** What Execute asks for. An id is minted where the caller chose none. */
export function parseExecute(request: ExecuteRequest): ExecutionWish {
  return {
    ...parseCommand(request),
    timeoutMs: (request.timeout && durationMs(request.timeout)) || undefined,
    maxOutputBytes: parseMaxOutput(request.maxOutput),
    retainOutput: request.retainOutput,
    onDisconnect: parseOnDisconnect(request),
    drainMs: request.drain && durationMs(request.drain),
    leftovers: request.leftovers === Leftovers.KILL ? "kill" : "keep",
  };
}

/** What RunCommand asks for, and how much of each output it keeps. */
export function parseRunCommand(request: RunCommandRequest): { wish: ExecutionWish; keepBytes: number } {
  const timeoutMs = request.timeout ? durationMs(request.timeout) : runCommandTimeoutDefaultMs;
  const wish: ExecutionWish = {
    ...parseCommand(request),
    timeoutMs: timeoutMs || undefined,
    // All of it is read, so that the command can end: what is not kept is dropped here.
    maxOutputBytes: undefined,
    retainOutput: false,
    onDisconnect: "cancel",
    drainMs: undefined,
    leftovers: "keep",
  };
  return { wish, keepBytes: request.maxOutput || runCommandOutputMaxBytes };
}

type Command = Pick<ExecuteRequest, "command" | "args" | "cwd" | "env" | "stdin" | "executionId">;

function parseCommand(request: Command) {
  return {
    executionId: parseExecutionId(request.executionId),
    command: request.command,
    args: request.args,
    cwd: request.cwd || undefined,
    env: request.env,
    stdin: request.stdin.byteLength > 0 ? request.stdin : undefined,
  };
}

function parseExecutionId(text: string): ExecutionId {
  const id = text || randomUUID();
  if (isExecutionId(id)) return id;
  throw invalidRequest([{ field: "execution_id", description: "is not an execution id" }]);
}

/** 0: no bound. What is beyond exact numbers is beyond any output. */
function parseMaxOutput(bytes: bigint): number | undefined {
  if (bytes === 0n) return undefined;
  return bytes > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(bytes);
}

function parseOnDisconnect({ onDisconnect, executionId }: ExecuteRequest): ExecutionWish["onDisconnect"] {
  if (onDisconnect === OnDisconnect.UNSPECIFIED) return executionId === "" ? "cancel" : "detach";
  return onDisconnect === OnDisconnect.CANCEL ? "cancel" : "detach";
}
