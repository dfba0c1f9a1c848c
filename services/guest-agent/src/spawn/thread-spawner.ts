import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type Refusal, refused } from "./posix-calls.ts";
import type { Reaper } from "./reaper.ts";
import type { Program, ProgramStart, Spawner } from "./spawner.ts";

/** What the thread is told. */
export interface Order {
  readonly number: number;
  readonly start: ProgramStart;
}

/** What it answers: the program's number, or what the kernel said. */
export type Answer =
  | { readonly number: number; readonly pid: number }
  | { readonly number: number; readonly code: string; readonly message: string };

/** What the thread is made with. */
export interface Shared {
  /** Two int32: the number of the order that it has in hand, and the pid of what it has started for that; 0: nothing yet. */
  readonly memory: SharedArrayBuffer;
}

const sharedBytes = 2 * Int32Array.BYTES_PER_ELEMENT;

/** In the bundle, beside the agent. */
const threadFile = join(import.meta.dirname, "start-thread.mjs");

/**
 * Starts programs by posix_spawn in a thread of its own, in the order in which they were asked for: a start waits until the new process
 * has had its turn on the machine and its file has been read, and the event loop does not. (docs/decisions/0015-starts-in-a-thread.md)
 */
export class ThreadSpawner implements Spawner {
  readonly #reaper: Reaper;
  readonly #file: string;
  readonly #waiting = new Map<number, PromiseWithResolvers<number>>();
  /** Undefined: it has ended, which it does only for want of memory or threads. The next start makes another. */
  #thread: Worker | undefined;
  #next = 1;

  /** Throws where the bundle has no such thread. */
  constructor(reaper: Reaper, file = threadFile) {
    if (!existsSync(file)) throw new Error(`${file} is missing`);
    this.#reaper = reaper;
    this.#file = file;
    this.#thread = this.#begin(); // At once: no command waits for it.
  }

  async spawn(start: ProgramStart): Promise<Program> {
    const pid = await this.#order(start);
    // What ended before its number was known here has not been waited for, so that the number is still its own.
    return { pid, exited: this.#reaper.exitOf(pid) };
  }

  /** Something is being started. The process cannot exit of itself as long as the kernel does not answer that. */
  get isBusy(): boolean {
    return this.#waiting.size > 0;
  }

  /** For tests: ends the thread as want of memory does, as soon as it returns from the kernel. */
  breakThread(): void {
    void this.#thread?.terminate();
  }

  #order(start: ProgramStart): Promise<number> {
    this.#thread ??= this.#begin();
    const number = this.#next++;
    const answer = Promise.withResolvers<number>();
    this.#waiting.set(number, answer);
    this.#thread.ref(); // A start that is under way is waited for.
    this.#thread.postMessage({ number, start } satisfies Order);
    return answer.promise;
  }

  #begin(): Worker {
    const memory = new SharedArrayBuffer(sharedBytes);
    const workerData: Shared = { memory };
    const name = "starts";
    // Nothing of how the agent was run, and nothing of what it was told: the thread needs neither.
    const thread = new Worker(this.#file, { name, workerData, execArgv: [], env: {} });
    thread.unref();
    thread.on("message", (answer: Answer) => this.#answered(answer));
    thread.on("error", (error) => console.error("the thread that starts programs:", error));
    thread.once("exit", () => this.#ended(thread, new Int32Array(memory)));
    return thread;
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.number);
    this.#waiting.delete(answer.number);
    if (this.#waiting.size === 0) this.#thread?.unref();
    if ("pid" in answer) waiting?.resolve(answer.pid);
    else waiting?.reject(Object.assign(new Error(answer.message), { code: answer.code }) satisfies Refusal);
  }

  /** It answers no more. What it had in hand runs if its pid is known, and what it had not begun never does. */
  #ended(thread: Worker, [inHand, pid = 0]: Int32Array): void {
    if (this.#thread === thread) this.#thread = undefined;
    for (const [number, waiting] of this.#waiting) {
      this.#waiting.delete(number);
      if (number === inHand && pid > 0) waiting.resolve(pid);
      else waiting.reject(refused("EAGAIN", "the thread that starts programs has ended"));
    }
  }
}
