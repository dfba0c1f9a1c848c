import { once } from "node:events";
import { constants } from "node:os";
import { addAbortSignal } from "node:stream";
import { buffer } from "node:stream/consumers";
import { ConnectError } from "@connectrpc/connect";
import { ExecuteResponseSchema, type ExecutionExited, OutputStream } from "@holdfast/api/holdfast/v1/execution_pb";
import { stdinMaxBytes } from "@holdfast/contract";
import { durationOf } from "../duration.ts";
import { environmentOf } from "../environment.ts";
import { execFailedCode, UsageError, wordsOf } from "../failure.ts";
import { remoteOf } from "../location.ts";
import { sayJson, write } from "../print.ts";
import { printable } from "../printable.ts";
import type { Session } from "../program.ts";

export interface ExecOptions {
  readonly cwd?: string;
  readonly env: readonly string[];
  readonly stdin?: true;
  readonly timeout?: number;
}

/** Runs a command, streams what it prints, and exits as it did. Ctrl-C ends the command. */
export async function exec(
  { connection, json, signal }: Session,
  workspace: string,
  words: readonly string[],
  options: ExecOptions,
) {
  const { workspaceId } = remoteOf(workspace);
  const [command = "", ...args] = words;
  const request = {
    workspaceId,
    command,
    args,
    cwd: options.cwd ?? "",
    env: environmentOf(options.env),
    stdin: options.stdin ? await standardInput(signal) : new Uint8Array(),
    ...(options.timeout === undefined ? {} : { timeout: durationOf(options.timeout) }),
  };
  try {
    for await (const response of connection.executions.execute(request, { signal })) {
      const { event } = response;
      if (json) await sayJson(ExecuteResponseSchema, response, "others");
      else if (event.case === "output") {
        if (event.value.stream === OutputStream.STDERR) await writeError(event.value.data);
        else await write(event.value.data);
      } else if (event.case === "gap") {
        console.error(`holdfast: ${event.value.to - event.value.from} bytes of output are missing here`);
      }
      if (event.case === "exited") process.exitCode = exitOf(event.value);
    }
  } catch (error) {
    if (!(error instanceof ConnectError) || signal.aborted) throw error;
    console.error(`holdfast: ${wordsOf(error)}`);
    process.exitCode = execFailedCode;
  }
}

/** As a shell tells it: the code, or 128 and the signal's number. */
function exitOf({ status, timedOut, message, leftovers }: ExecutionExited): number {
  if (message !== "") console.error(`holdfast: ${printable(message)}`);
  if (timedOut) console.error("holdfast: the command was ended at its timeout");
  const left = leftovers.map(({ pid, name }) => `${pid} (${printable(name)})`).join(", ");
  if (left !== "") console.error(`holdfast: it left processes running: ${left}`);
  if (status.case === "exitCode") return status.value;
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return 128 + (numbers[status.value ?? ""] ?? 0);
}

async function standardInput(signal: AbortSignal): Promise<Uint8Array> {
  const input = await buffer(addAbortSignal(signal, process.stdin));
  if (input.length > stdinMaxBytes) {
    throw new UsageError(
      `standard input is longer than ${stdinMaxBytes} bytes: copy it into a file first (holdfast cp)`,
    );
  }
  return input;
}

async function writeError(data: Uint8Array): Promise<void> {
  if (!process.stderr.write(data)) await once(process.stderr, "drain");
}
