import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";

/** One output of a program: what it writes to, and where that is read. */
export interface OutputPipe {
  /** For the program. Whoever takes it closes it once the program has it. */
  readonly writeFd: number;
  readonly reader: Socket;
}

const madeAtOnce = 64;
const refillBelow = 16;

/**
 * Real pipes. Node gives children socket pairs, which cannot be opened by name: `echo x > /dev/stderr` fails on them. A pipe is
 * made as a FIFO, opened at both ends and unlinked; FIFOs are made many at a time, since Node has no call for one.
 */
export class OutputPipes {
  readonly #directory: string;
  readonly #ready: string[] = [];
  #next = 0;
  #making: Promise<void> | undefined;
  /** The guest has no mkfifo: not asked again. */
  #impossible = false;
  /** The last failure that was logged; the same one again is not. */
  #lastFailure = "";

  /** Takes a directory for itself; what a former agent process left there goes. */
  constructor(directory: string) {
    this.#directory = directory;
    rmSync(directory, { recursive: true, force: true });
  }

  /** Makes the first ones, so that the first command need not wait for them. */
  prepare(): void {
    void this.#refill();
  }

  /** Two pipes; undefined where they cannot be made. Rejects when the guest has no descriptors left. */
  async takePair(): Promise<readonly [OutputPipe, OutputPipe] | undefined> {
    const pair = await this.#take();
    if (pair !== "swept") return pair;
    // Programs run as the agent's user, and one may sweep its directory away, as `rm -rf /` does: once more, with new ones.
    this.#ready.length = 0;
    const again = await this.#take();
    return again === "swept" ? undefined : again;
  }

  async #take(): Promise<readonly [OutputPipe, OutputPipe] | "swept" | undefined> {
    if (this.#ready.length < 2) await this.#refill();
    const [one, other] = [this.#ready.pop(), this.#ready.pop()];
    if (this.#ready.length < refillBelow) void this.#refill();
    if (one === undefined || other === undefined) return undefined;
    const first = open(one);
    if (first === undefined) return "swept";
    try {
      const second = open(other);
      if (second !== undefined) return [first, second];
    } catch (error) {
      release(first);
      throw error;
    }
    release(first);
    return "swept";
  }

  #refill(): Promise<void> {
    if (this.#impossible) return Promise.resolve();
    this.#making ??= this.#make().finally(() => {
      this.#making = undefined;
    });
    return this.#making;
  }

  #make(): Promise<void> {
    const paths = Array.from({ length: madeAtOnce }, () => join(this.#directory, String(this.#next++)));
    return new Promise((resolve) => {
      const failed = (why: string): void => {
        if (why !== this.#lastFailure) {
          console.error(`no named pipes (mkfifo: ${why}): commands cannot open /dev/stdout and /dev/stderr by name`);
        }
        this.#lastFailure = why;
        resolve();
      };
      try {
        mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      } catch (error) {
        return failed(String(error));
      }
      const child = spawn("mkfifo", ["-m", "600", ...paths], { stdio: "ignore" });
      child.once("error", (error) => {
        this.#impossible = codeOf(error) === "ENOENT";
        failed(error.message);
      });
      child.once("exit", (code, signal) => {
        if (code !== 0) return failed(`ended with ${code ?? signal}`);
        this.#ready.push(...paths);
        resolve();
      });
    });
  }
}

/** Undefined when the FIFO is not there any more. */
function open(path: string): OutputPipe | undefined {
  // Reader first and without blocking: then the writer finds one, and blocks as programs expect of their output.
  let readFd: number | undefined;
  try {
    readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writeFd = openSync(path, constants.O_WRONLY);
    return { writeFd, reader: new Socket({ fd: readFd, readable: true, writable: false }) };
  } catch (error) {
    if (readFd !== undefined) closeSync(readFd);
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  } finally {
    rmSync(path, { force: true });
  }
}

/** Gives a pipe back that no program got. */
function release(pipe: OutputPipe): void {
  closeSync(pipe.writeFd);
  pipe.reader.destroy();
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
