import { randomUUID } from "node:crypto";
import {
  type AttachExecutionRequest,
  type CancelExecutionRequest,
  type ExecuteInteractiveRequest,
  type ExecuteRequest,
  Leftovers,
  OnDisconnect,
  type RunCommandRequest,
  type SignalExecutionRequest,
} from "@holdfast/api/holdfast/v1/execution_pb";
import {
  type BootId,
  bootIdOf,
  type ExecutionId,
  isExecutionId,
  runCommandOutputMaxBytes,
  runCommandTimeoutDefaultMs,
} from "@holdfast/contract";
import type { AttachWish, CancelOrder, CommandInput, ExecutionWish, SignalOrder } from "@holdfast/workspace";
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

/** What AttachExecution asks for. */
export function parseAttachExecution(request: AttachExecutionRequest): AttachWish {
  return {
    executionId: parseExecutionId(request.executionId),
    fromOffset: exactOrMore(request.fromOffset),
    maxOutputBytes: parseMaxOutput(request.maxOutput),
    expectedBootId: parseBootId(request.expectedBootId),
  };
}

export function parseSignalExecution(request: SignalExecutionRequest): SignalOrder {
  const { executionId, signal, expectedBootId } = request;
  return { executionId: parseExecutionId(executionId), signal, expectedBootId: parseBootId(expectedBootId) };
}

export function parseCancelExecution({ executionId, grace, expectedBootId }: CancelExecutionRequest): CancelOrder {
  return {
    executionId: parseExecutionId(executionId),
    graceMs: grace && durationMs(grace),
    expectedBootId: parseBootId(expectedBootId),
  };
}

/** What follows the start of an interactive command. Throws INVALID_REQUEST at a second start. */
export function parseCommandInput({ request }: ExecuteInteractiveRequest): CommandInput {
  switch (request.case) {
    case "stdin":
      return { t: "stdin", data: request.value };
    case "stdinEnd":
      return { t: "stdin_end" };
    case "signal":
      return { t: "signal", signal: request.value };
    case "detach":
      return { t: "detach" };
    default:
      throw invalidRequest([{ field: "start", description: "came twice; one comes first, then input" }]);
  }
}

type Command = Pick<ExecuteRequest, "command" | "args" | "cwd" | "env" | "stdin" | "executionId" | "expectedBootId">;

function parseCommand(request: Command) {
  return {
    executionId: parseExecutionId(request.executionId),
    command: request.command,
    args: request.args,
    cwd: request.cwd || undefined,
    env: request.env,
    stdin: request.stdin.byteLength > 0 ? request.stdin : undefined,
    ...(request.expectedBootId === "" ? {} : { expectedBootId: bootIdOf(request.expectedBootId) }),
  };
}

function parseBootId(text: string): BootId | undefined {
  return text === "" ? undefined : bootIdOf(text);
}

/** The id of a request, or a minted one where it names none. */
export function parseExecutionId(text: string): ExecutionId {
  const id = text || randomUUID();
  if (isExecutionId(id)) return id;
  throw invalidRequest([{ field: "execution_id", description: "is not an execution id" }]);
}

/** 0: no bound. What is beyond exact numbers is beyond any output. */
function parseMaxOutput(bytes: bigint): number | undefined {
  return bytes === 0n ? undefined : exactOrMore(bytes);
}

function exactOrMore(bytes: bigint): number {
  return bytes > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(bytes);
}

function parseOnDisconnect({ onDisconnect, executionId }: ExecuteRequest): ExecutionWish["onDisconnect"] {
  if (onDisconnect === OnDisconnect.UNSPECIFIED) return executionId === "" ? "cancel" : "detach";
  return onDisconnect === OnDisconnect.CANCEL ? "cancel" : "detach";
}
