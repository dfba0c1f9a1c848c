import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { AnsweredError } from "@holdfast/guest-link";
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
export async function launch(wish: StartWish, cwd: string, env: Record<string, string>): Promise<Launch> {
  let child: ChildProcess;
  try {
    child = spawn(wish.command, [...wish.args], {
      cwd,
      env,
      detached: true, // setsid: the leader's pid names its session and its group.
      stdio: [wish.stdin.length > 0 ? "pipe" : "ignore", "pipe", "pipe"],
    });
  } catch (error) {
    return notStarted(wish.command, error);
  }
  if (child.pid === undefined) {
    const error = await new Promise((resolve) => child.once("error", resolve));
    return notStarted(wish.command, error);
  }
  child.on("error", () => undefined); // Only failed kill() calls come here after the start, and none is made.
  if (child.stdin) {
    child.stdin.on("error", () => undefined); // A program may end, or close its input, without reading it (G12).
    child.stdin.end(wish.stdin);
  }
  const { pid, stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error("spawned without pipes");
  return { t: "running", child, stdout, stderr, pid, startTicks: readProcess(pid)?.startTicks ?? 0 };
}

function notStarted(command: string, error: unknown): Launch {
  const code = typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
  switch (code) {
    case "ENOENT":
    case "ENOTDIR":
      return { t: "not-started", code: 127, message: `${command}: no such program` };
    case "EAGAIN":
    case "ENOMEM":
    case "EMFILE":
    case "ENFILE":
      throw new AnsweredError(
        "EXECUTION_CAPACITY",
        `${command} was not started: the guest has no room for another process (${code}). End something and try again.`,
        { cause: code },
      );
    case "E2BIG":
      throw new AnsweredError(
        "INVALID_REQUEST",
        `${command} was not started: its arguments and environment together are longer than the kernel takes (E2BIG).`,
        { field: "args" },
      );
    default:
      return { t: "not-started", code: 126, message: `${command}: cannot be executed (${code || String(error)})` };
  }
}
