import { type ChildProcess, spawn } from "node:child_process";
import { closeSync } from "node:fs";
import type { Readable } from "node:stream";
import { AnsweredError } from "@holdfast/guest-link";
import type { OutputPipe, OutputPipes } from "./output-pipes.ts";
import { readProcess } from "./processes.ts";
import type { StartWish } from "./start-wish.ts";

/** What came of starting a program. */
export type Launch =
  | {
      readonly t: "running";
      readonly child: ChildProcess;
      readonly stdout: Readable;
      readonly stderr: Readable;
      readonly pid: number;
      readonly startTicks: number;
    }
  /** As a shell would say it: a result, not a failure. */
  | { readonly t: "not-started"; readonly code: 126 | 127; readonly message: string };

/**
 * Starts the program in its own kernel session and process group. Rejects with AnsweredError only when it was the guest that
 * lacked something; nothing was started then.
 */
export async function launch(
  wish: StartWish,
  cwd: string,
  env: Record<string, string>,
  pipes: OutputPipes,
): Promise<Launch> {
  const pair = await pipes.takePair().catch((error) => {
    throw noRoom(wish.command, codeOf(error));
  });
  const child = await spawned(wish, cwd, env, pair);
  if (child instanceof Error) {
    for (const { reader } of pair ?? []) reader.destroy();
    return notStarted(wish.command, child);
  }
  child.on("error", () => undefined); // Only failed kill() calls come here after the start, and none is made.
  if (child.stdin) {
    child.stdin.on("error", () => undefined); // A program may end, or close its input, without reading it (G12).
    child.stdin.end(wish.stdin);
  }
  const { pid } = child;
  const stdout = pair?.[0].reader ?? child.stdout;
  const stderr = pair?.[1].reader ?? child.stderr;
  if (pid === undefined || stdout === null || stderr === null) throw new Error("spawned without pid or outputs");
  return { t: "running", child, stdout, stderr, pid, startTicks: startTicksOf(pid) };
}

/** 0 where it cannot be read: then the number alone proves nothing, and what is the program's is known by its marker. */
function startTicksOf(pid: number): number {
  try {
    return readProcess(pid)?.startTicks ?? 0;
  } catch {
    return 0; // The program runs: for want of a descriptor to look at it, it is not called unstarted.
  }
}

async function spawned(
  wish: StartWish,
  cwd: string,
  env: Record<string, string>,
  pair: readonly [OutputPipe, OutputPipe] | undefined,
): Promise<ChildProcess | Error> {
  try {
    const child = spawn(wish.command, [...wish.args], {
      cwd,
      env,
      detached: true, // setsid: the leader's pid names its session and its group.
      stdio: [wish.stdin.length > 0 ? "pipe" : "ignore", pair?.[0].writeFd ?? "pipe", pair?.[1].writeFd ?? "pipe"],
    });
    if (child.pid !== undefined) return child;
    return await new Promise<Error>((resolve) => child.once("error", resolve));
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    // The program has its own by now. One left open here would keep the output from ever ending.
    for (const { writeFd } of pair ?? []) closeSync(writeFd);
  }
}

function notStarted(command: string, error: Error): Launch {
  const code = codeOf(error);
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return { t: "not-started", code: 127, message: `${command}: no such program` };
    case "EAGAIN":
    case "ENOMEM":
    case "EMFILE":
    case "ENFILE":
      throw noRoom(command, code);
    case "E2BIG":
      throw new AnsweredError(
        "INVALID_REQUEST",
        `${command} was not started: its arguments and environment together are longer than the kernel takes (E2BIG).`,
        { field: "args" },
      );
    default:
      return { t: "not-started", code: 126, message: `${command}: cannot be executed (${code || error.message})` };
  }
}

function noRoom(command: string, code: string): AnsweredError {
  return new AnsweredError(
    "EXECUTION_CAPACITY",
    `${command} was not started: the guest has no room for another process (${code}). End something and try again.`,
    { cause: code },
  );
}

function codeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}
