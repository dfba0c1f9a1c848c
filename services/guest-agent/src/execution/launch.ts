import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { AnsweredError } from "@holdfast/guest-link";
import { codeOf, type NotStarted, notStarted } from "../spawn/not-started.ts";
import type { Pipe, Pipes } from "../spawn/pipes.ts";
import type { Program, Spawner } from "../spawn/spawner.ts";
import type { PathLook } from "./path-looks.ts";
import { assertNotFor } from "./start-directory.ts";
import type { StartWish } from "./start-wish.ts";
import { StreamedInput } from "./streamed-input.ts";

/** What came of starting a program. */
export type Launch =
  | {
      readonly t: "running";
      readonly program: Program;
      readonly stdout: Socket;
      readonly stderr: Socket;
      /** Undefined: there is none. */
      readonly input: StreamedInput | undefined;
    }
  | NotStarted;

/** What is started. */
export interface LaunchWish extends Pick<StartWish, "command" | "args"> {
  readonly takesInput: boolean;
}

/** What programs are started with. */
export interface LaunchNeeds {
  readonly spawner: Spawner;
  readonly pipes: Pipes;
  readonly looks: PathLook;
}

/**
 * Starts the program in its own kernel session and process group. Rejects with AnsweredError only when it was the guest that
 * lacked something, or as `admit`, which is asked in the step in which the program is begun; nothing was started then.
 */
export async function launch(
  wish: LaunchWish,
  cwd: string,
  env: Record<string, string>,
  { spawner, pipes, looks }: LaunchNeeds,
  admit: () => void,
): Promise<Launch> {
  const [out, err, inp] = await pipes.take(wish.takesInput ? 3 : 2).catch((error) => {
    throw error instanceof AnsweredError ? error : noRoom(wish.command, codeOf(error));
  });
  if (out === undefined || err === undefined) throw new Error("fewer pipes than were asked for");
  const { command, args } = wish;
  let program: Program;
  try {
    const stdio = [inp?.readFd, out.writeFd, err.writeFd] as const;
    program = await spawner.spawn({ command, args, cwd, env, stdio }, admit);
  } catch (error) {
    for (const pipe of [out, err, inp]) closeOwnEnd(pipe, pipe === inp ? "write" : "read");
    const full = (code: string, why?: string): AnsweredError => noRoom(command, code, why);
    await assertNotFor(cwd, error, looks, full);
    return notStarted(command, error, full);
  } finally {
    // The program has its own by now. One left open here would keep the output from ever ending.
    for (const fd of [inp?.readFd, out.writeFd, err.writeFd]) if (fd !== undefined) closeSync(fd);
  }
  const [stdout, stderr] = [out, err].map(({ readFd }) => new Socket({ fd: readFd, readable: true, writable: false }));
  if (stdout === undefined || stderr === undefined) throw new Error("a pipe without a reader");
  const input = inp === undefined ? undefined : new StreamedInput(inp.writeFd);
  return { t: "running", program, stdout, stderr, input };
}

function closeOwnEnd(pipe: Pipe | undefined, end: "read" | "write"): void {
  if (pipe !== undefined) closeSync(end === "read" ? pipe.readFd : pipe.writeFd);
}

/** A start for which the guest has no room. */
export function noRoom(
  command: string,
  code: string,
  why = `the guest has no room for another process (${code}). End something and try again.`,
): AnsweredError {
  return new AnsweredError("EXECUTION_CAPACITY", `${command} was not started: ${why}`, { cause: code });
}
