import { spawn } from "node:child_process";
import { closeSync, constants, mkdirSync, openSync, rmSync, unlinkSync } from "node:fs";
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
  /** The guest has no mkfifo, or it failed: not asked again. */
  #impossible = false;

  /** Takes a directory for itself; what a former agent process left there goes. */
  constructor(directory: string) {
    this.#directory = directory;
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory, { recursive: true, mode: 0o700 });
  }

  /** Makes the first ones, so that the first command need not wait for them. */
  prepare(): void {
    void this.#refill();
  }

  /** Two pipes; undefined where the guest has no mkfifo. Rejects when the guest has no descriptors left. */
  async takePair(): Promise<readonly [OutputPipe, OutputPipe] | undefined> {
    if (this.#ready.length < 2) await this.#refill();
    const [one, other] = [this.#ready.pop(), this.#ready.pop()];
    if (this.#ready.length < refillBelow) void this.#refill();
    if (one === undefined || other === undefined) return undefined;
    const first = open(one);
    try {
      return [first, open(other)];
    } catch (error) {
      release(first);
      throw error;
    }
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
      const child = spawn("mkfifo", ["-m", "600", ...paths], { stdio: "ignore" });
      const failed = (why: string): void => {
        this.#impossible = true;
        console.error(`no named pipes (mkfifo: ${why}): commands cannot open /dev/stdout and /dev/stderr by name`);
        resolve();
      };
      child.once("error", (error) => failed(error.message));
      child.once("exit", (code, signal) => {
        if (code === 0) {
          this.#ready.push(...paths);
          resolve();
        } else {
          failed(`ended with ${code ?? signal}`);
        }
      });
    });
  }
}

function open(path: string): OutputPipe {
  // Reader first and without blocking: then the writer finds one, and blocks as programs expect of their output.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const writeFd = openSync(path, constants.O_WRONLY);
    return { writeFd, reader: new Socket({ fd: readFd, readable: true, writable: false }) };
  } catch (error) {
    closeSync(readFd);
    throw error;
  } finally {
    unlinkSync(path);
  }
}

/** Gives a pipe back that no program got. */
function release(pipe: OutputPipe): void {
  closeSync(pipe.writeFd);
  pipe.reader.destroy();
}
