import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AnsweredError } from "@holdfast/guest-link";
import type { Pipe, Pipes } from "./pipes.ts";

const madeAtOnce = 64;
const refillBelow = 16;

/**
 * Pipes without a call of the C library: named ones, opened at both ends and unlinked. Made many at a time by the image's mkfifo, since
 * Node has no call for one.
 */
export class FifoPipes implements Pipes {
  readonly #directory: string;
  readonly #ready: string[] = [];
  #next = 0;
  #making: Promise<void> | undefined;
  /** Why the last ones could not be made; "" if they could. */
  #failure = "";

  /** Takes a directory for itself; what a former agent process left there goes. */
  constructor(directory: string) {
    this.#directory = directory;
    rmSync(directory, { recursive: true, force: true });
    void this.#refill();
  }

  async take(count: number): Promise<readonly Pipe[]> {
    // Programs run as the agent's user, and one may sweep the directory away, as `rm -rf /` does: once more, with new ones.
    const made = (await this.#take(count)) ?? (await this.#take(count));
    if (made !== undefined) return made;
    throw new AnsweredError(
      "GUEST_FEATURE_MISSING",
      `Nothing was started: this guest has neither the addon for its C library nor mkfifo to make pipes with (${this.#failure}). ` +
        "Put mkfifo into the image.",
      { cause: this.#failure },
    );
  }

  /** Undefined: there were not enough. */
  async #take(count: number): Promise<readonly Pipe[] | undefined> {
    if (this.#ready.length < count) await this.#refill();
    const paths = this.#ready.splice(0, count);
    if (this.#ready.length < refillBelow) void this.#refill();
    const made: Pipe[] = [];
    try {
      for (const path of paths) made.push(openBoth(path));
      if (made.length === count) return made;
    } catch (error) {
      release(made);
      if (codeOf(error) !== "ENOENT") throw error;
      this.#ready.length = 0; // Swept away, with all others.
      return undefined;
    }
    release(made);
    return undefined;
  }

  #refill(): Promise<void> {
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  #make(): Promise<void> {
    const paths = Array.from({ length: madeAtOnce }, () => join(this.#directory, String(this.#next++)));
    return new Promise((resolve) => {
      const settled = (failure: string): void => {
        if (failure !== "" && failure !== this.#failure) console.error(`no named pipes (mkfifo: ${failure})`);
        this.#failure = failure;
        if (failure === "") this.#ready.push(...paths);
        resolve();
      };
      try {
        mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      } catch (error) {
        return settled(String(error));
      }
      const child = spawn("mkfifo", ["-m", "600", ...paths], { stdio: "ignore" });
      child.once("error", (error) => settled(error.message));
      child.once("exit", (code, signal) => settled(code === 0 ? "" : `ended with ${code ?? signal}`));
    });
  }
}

/** Neither end blocks while it is opened, and both block afterwards, as programs expect of their input and output. */
function openBoth(path: string): Pipe {
  const opened: number[] = [];
  try {
    opened.push(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)); // So that a writer finds a reader.
    const writeFd = openSync(path, constants.O_WRONLY);
    opened.push(writeFd);
    return { readFd: openSync(path, constants.O_RDONLY), writeFd };
  } catch (error) {
    for (const fd of opened.slice(1)) closeSync(fd);
    throw error;
  } finally {
    if (opened[0] !== undefined) closeSync(opened[0]);
    rmSync(path, { force: true });
  }
}

function release(pipes: readonly Pipe[]): void {
  for (const { readFd, writeFd } of pipes) {
    closeSync(readFd);
    closeSync(writeFd);
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
