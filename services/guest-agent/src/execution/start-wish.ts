import { createHash } from "node:crypto";
import type { Duration } from "@bufbuild/protobuf/wkt";
import {
  type Command,
  Leftovers,
  OnDisconnect,
  type StartExecutionRequest,
} from "@holdfast/api/holdfast/guest/v1/execution_pb";
import {
  drainDefaultMs,
  drainMaxMs,
  type ExecutionId,
  isExecutionId,
  pathMaxBytes,
  stdinMaxBytes,
} from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** A start that has been checked, but for its directory. */
export interface StartWish {
  readonly id: ExecutionId;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly stdin: Uint8Array;
  /** Input comes bit by bit instead. */
  readonly streamedStdin: boolean;
  /** Undefined: it runs while it runs. */
  readonly timeoutMs: number | undefined;
  readonly retainOutput: boolean;
  readonly endsWithClient: boolean;
  readonly killsLeftovers: boolean;
  readonly drainMs: number;
  /** Of everything that makes two starts the same request. */
  readonly hash: string;
}

/** Checks what came over the wire. */
export function parseStart(request: StartExecutionRequest): StartWish {
  const id = parseExecutionId(request.executionId);
  const command = request.command;
  if (command === undefined || command.command === "") throw invalid("command", "must not be empty");
  assertName(command.command);
  for (const [at, text] of [command.command, ...command.args].entries()) {
    if (text.includes("\0")) throw invalid(at === 0 ? "command" : `args[${at - 1}]`, "must not contain NUL");
  }
  for (const [name, value] of Object.entries(command.env)) {
    if (name === "" || /[=\0]/.test(name)) throw invalid("env", `has no usable name in ${JSON.stringify(name)}`);
    if (value.includes("\0")) throw invalid(`env[${name}]`, "must not contain NUL");
  }
  if (command.cwd.includes("\0")) throw invalid("cwd", "must not contain NUL");
  if (command.stdin.length > stdinMaxBytes) throw invalid("stdin", `is longer than ${stdinMaxBytes} bytes`);
  if (command.streamedStdin && command.stdin.length > 0) throw invalid("stdin", "must be empty with streamed_stdin");
  const timeoutMs = parseDuration("timeout", command.timeout);
  const drainMs = parseDuration("drain", request.drain) ?? drainDefaultMs;
  if (drainMs > drainMaxMs) throw invalid("drain", `is longer than ${drainMaxMs} ms`);
  return {
    id,
    command: command.command,
    args: command.args,
    cwd: command.cwd,
    env: command.env,
    stdin: command.stdin,
    streamedStdin: command.streamedStdin,
    timeoutMs: timeoutMs === 0 ? undefined : timeoutMs,
    retainOutput: request.retainOutput,
    endsWithClient: request.onDisconnect === OnDisconnect.CANCEL,
    killsLeftovers: request.leftovers === Leftovers.KILL,
    drainMs,
    hash: hashOf(command, timeoutMs),
  };
}

/** Refuses a program's name that the kernel would not take: records and answers quote it. */
export function assertName(command: string): void {
  if (Buffer.byteLength(command) > pathMaxBytes) throw invalid("command", `is longer than ${pathMaxBytes} bytes`);
}

/** Refuses what cannot name an execution. */
export function parseExecutionId(text: string): ExecutionId {
  if (isExecutionId(text)) return text;
  throw invalid("execution_id", "must be 1 to 64 of letters, digits, '.', '_' and '-'");
}

/** Milliseconds, or undefined where it is absent. Any length; negative ones are refused. */
export function parseDuration(field: string, duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const ms = Number(duration.seconds) * 1000 + duration.nanos / 1_000_000;
  if (ms < 0) throw invalid(field, "must not be negative");
  return ms;
}

function hashOf(command: Command, timeoutMs: number | undefined): string {
  const env = Object.entries(command.env).sort(([a], [b]) => (a < b ? -1 : 1));
  const hash = createHash("sha256");
  hash.update(
    JSON.stringify([
      command.command,
      command.args,
      command.cwd,
      env,
      timeoutMs || 0,
      command.stdin.length,
      command.streamedStdin,
    ]),
  );
  return hash.update(command.stdin).digest("base64");
}

/** A request that cannot be served as it is. */
export function invalid(field: string, description: string): AnsweredError {
  return new AnsweredError("INVALID_REQUEST", `Nothing was done: ${field} ${description}.`, { field });
}
