import { accessSync, closeSync, constants, writeSync } from "node:fs";
import { access } from "node:fs/promises";
import { Socket } from "node:net";
import type { Readable } from "node:stream";
import { ReadStream } from "node:tty";
import { AnsweredError } from "@holdfast/guest-link";
import type { PathLook } from "../execution/path-looks.ts";
import { assertNotFor } from "../execution/start-directory.ts";
import type { TerminalCalls, TerminalSize } from "../libc/terminal-calls.ts";
import { codeOf, type NotStarted, notStarted } from "../spawn/not-started.ts";
import type { Pipes } from "../spawn/pipes.ts";
import type { ExitStatus, Program, ProgramStart, Spawner } from "../spawn/spawner.ts";
import type { SessionWish } from "./session-wish.ts";

/** What sessions need of the kernel. */
export interface SessionCalls {
  readonly spawner: Spawner;
  readonly pipes: Pipes;
  readonly terminals: TerminalCalls;
  readonly looks: PathLook;
}

/** The agent's side of a session's terminal. Of no effect once it is closed. */
export interface Terminal {
  /** Gives it input, as much as fits now: how many bytes it took. Throws with `code` EIO when nobody can read it any more. */
  write(bytes: Uint8Array): number;
  resize(size: TerminalSize): void;
  foregroundGroup(): number;
}

/** A session's program, once it runs. */
export interface SessionProgram {
  readonly pid: number;
  /** What it writes. Ends with an error, or without one, when nobody holds the other side any more. */
  readonly output: Readable;
  /** Undefined: it has none. */
  readonly terminal: Terminal | undefined;
  readonly exited: Promise<ExitStatus>;
}

export type SessionLaunch = { readonly t: "running"; readonly program: SessionProgram } | NotStarted;

const shells = ["/bin/bash", "/bin/sh"];

/**
 * Starts the program of a session. Rejects with AnsweredError only when it was the guest that lacked something, or as `admit`, which is
 * asked in the step in which the program is begun; nothing runs then.
 */
export async function launchSession(
  wish: SessionWish,
  cwd: string,
  env: Readonly<Record<string, string>>,
  calls: SessionCalls,
  admit: () => void,
): Promise<SessionLaunch> {
  const { looks } = calls;
  const command = wish.command === "" ? await shellOf(env, looks) : wish.command;
  const name = wish.login ? `-${command.slice(command.lastIndexOf("/") + 1)}` : command;
  const start = { command, name, args: wish.args, cwd, env };
  try {
    const program = await (wish.kind === "terminal"
      ? onTerminal(wish.size, start, calls, admit)
      : detached(start, calls, admit));
    return { t: "running", program };
  } catch (error) {
    const full = (code: string, why?: string): AnsweredError => noRoom(wish, code, why);
    await assertNotFor(cwd, error, looks, full);
    return notStarted(command, error, full);
  }
}

type Start = Omit<ProgramStart, "stdio">;

async function onTerminal(
  size: TerminalSize,
  start: Start,
  calls: SessionCalls,
  admit: () => void,
): Promise<SessionProgram> {
  const { terminals, spawner } = calls;
  const { master, path } = terminals.openPty(size);
  const { pid, exited } = await closedUnless(master, () =>
    spawner.spawn({ ...start, stdio: { terminal: path } }, admit),
  );
  const output = await closedUnless(master, async () => new ReadStream(master));
  const terminal: Terminal = {
    write(bytes) {
      // The descriptor's number is another's once the stream has closed it.
      if (output.destroyed) throw Object.assign(new Error("EIO: the terminal is closed"), { code: "EIO" });
      try {
        return writeSync(master, bytes);
      } catch (error) {
        if (codeOf(error) === "EAGAIN") return 0;
        throw error;
      }
    },
    resize(wished) {
      if (!output.destroyed) terminals.resize(master, wished);
    },
    foregroundGroup: () => (output.destroyed ? 0 : terminals.foregroundGroup(master)),
  };
  return { pid, exited, output, terminal };
}

async function detached(start: Start, { spawner, pipes }: SessionCalls, admit: () => void): Promise<SessionProgram> {
  const [pipe] = await pipes.take(1);
  if (pipe === undefined) throw new Error("fewer pipes than were asked for");
  const { readFd, writeFd } = pipe;
  let program: Program;
  try {
    program = await closedUnless(readFd, () =>
      spawner.spawn({ ...start, stdio: [undefined, writeFd, writeFd] }, admit),
    );
  } finally {
    closeSync(writeFd); // The program has its own by now.
  }
  const output = await closedUnless(readFd, async () => new Socket({ fd: readFd, readable: true, writable: false }));
  return { ...program, output, terminal: undefined };
}

/** Closes a descriptor when what would have taken it over fails. */
async function closedUnless<T>(fd: number, take: () => Promise<T>): Promise<T> {
  try {
    return await take();
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}

async function shellOf(env: Readonly<Record<string, string>>, looks: PathLook): Promise<string> {
  const { SHELL = "" } = env;
  if (SHELL !== "" && !shells.includes(SHELL) && (await isUsable(SHELL, looks))) return SHELL;
  return (shells.includes(SHELL) ? [SHELL, ...shells] : shells).find(isExecutable) ?? "/bin/sh";
}

/** Of the user's choice: a mount of the user's may be behind it. */
async function isUsable(path: string, looks: PathLook): Promise<boolean> {
  try {
    await looks.at(path, () => access(path, constants.X_OK));
    return true;
  } catch {
    return false; // Not there, not to be run, or on a file system that does not answer: the next one.
  }
}

/** Of the image. */
function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // Not there, or not to be run: the next one.
  }
}

/** A session for which the guest has no room. */
export function noRoom(
  { id }: SessionWish,
  code: string,
  why = `the guest has no room for another process or terminal (${code}). End something and try again.`,
): AnsweredError {
  return new AnsweredError("SESSION_CAPACITY", `Session ${id} was not started: ${why}`, {
    session_id: id,
    cause: code,
  });
}
