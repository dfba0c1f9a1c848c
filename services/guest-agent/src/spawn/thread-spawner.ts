import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type Clock, systemClock } from "@holdfast/async";
import { startsHeldAfterMs } from "@holdfast/contract";
import { retiring, StartsHeld } from "./not-started.ts";
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

/** One that was asked for. */
interface Asked {
  readonly start: ProgramStart;
  /** Throws when it may not be begun any more. */
  readonly admit: () => void;
  readonly answer: PromiseWithResolvers<number>;
}

/** The one that the thread has: whether it runs is not known before the thread answers, or ends. */
interface InHand extends Asked {
  readonly number: number;
  readonly cancelHeld: () => void;
}

/**
 * Starts programs by posix_spawn in a thread of its own, in the order in which they were asked for: a start waits until the new process
 * has had its turn on the machine and its file has been read, and the event loop does not. The thread is given one at a time, so that of
 * all others it is known that they have not begun. (docs/decisions/0015-starts-in-a-thread.md)
 */
export class ThreadSpawner implements Spawner {
  readonly #reaper: Reaper;
  readonly #file: string;
  readonly #clock: Clock;
  /** In the order in which they were asked for: none of them has begun. */
  readonly #waiting = new Set<Asked>();
  #inHand: InHand | undefined;
  /** The one in hand is not answered: nothing else is promised its turn. */
  #isHeld = false;
  /** Undefined: it has ended, which it does only for want of memory or threads. The next start makes another. */
  #thread: Worker | undefined;
  #next = 1;
  #retired = false;

  /** Throws where the bundle has no such thread. */
  constructor(reaper: Reaper, file = threadFile, clock: Clock = systemClock) {
    if (!existsSync(file)) throw new Error(`${file} is missing`);
    this.#reaper = reaper;
    this.#file = file;
    this.#clock = clock;
    try {
      this.#thread = this.#begin(); // At once: no command waits for it.
    } catch (error) {
      console.error("no thread to start programs in; the next start tries again:", error);
    }
  }

  /** Rejects with StartsHeld while the kernel does not answer another start, and with AnsweredError once retired; nothing runs then. */
  async spawn(start: ProgramStart, admit = (): void => undefined): Promise<Program> {
    const pid = await this.#ask(start, admit);
    // What ended before its number was known here has not been waited for, so that the number is still its own.
    return { pid, exited: this.#reaper.exitOf(pid) };
  }

  /** Something is being started. The process cannot exit of itself as long as the kernel does not answer that. */
  get isBusy(): boolean {
    return this.#inHand !== undefined;
  }

  /** Begins nothing any more: what waits for its turn is refused. What is in hand is left to the kernel. */
  retire(): void {
    this.#retired = true;
    this.#refuseWaiting(retiring());
  }

  /** For tests: ends the thread as want of memory does, as soon as it returns from the kernel. */
  breakThread(): void {
    void this.#thread?.terminate();
  }

  async #ask(start: ProgramStart, admit: () => void): Promise<number> {
    if (this.#retired) throw retiring();
    if (this.#isHeld && this.#inHand !== undefined) throw new StartsHeld(this.#inHand.start.command);
    const answer = Promise.withResolvers<number>();
    this.#waiting.add({ start, admit, answer });
    this.#beginNext();
    return answer.promise;
  }

  #beginNext(): void {
    if (this.#inHand !== undefined) return;
    const [asked] = this.#waiting;
    if (asked === undefined) {
      this.#thread?.unref();
      return;
    }
    this.#waiting.delete(asked);
    try {
      asked.admit(); // Much may have changed while it waited for its turn.
    } catch (refusal) {
      asked.answer.reject(refusal);
      this.#beginNext();
      return;
    }
    const number = this.#next++;
    try {
      this.#thread ??= this.#begin();
      this.#thread.ref(); // A start that is under way is waited for.
      this.#thread.postMessage({ number, start: asked.start } satisfies Order);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      asked.answer.reject(refused("EAGAIN", `no thread to start programs in (${why})`));
      this.#beginNext();
      return;
    }
    const cancelHeld = this.#clock.schedule(startsHeldAfterMs, () => {
      this.#isHeld = true;
      this.#refuseWaiting(new StartsHeld(asked.start.command));
    });
    this.#inHand = { ...asked, number, cancelHeld };
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
    const inHand = this.#inHand;
    if (inHand?.number !== answer.number) return;
    this.#letGo(inHand);
    this.#beginNext(); // Before anything else: the thread is idle.
    if ("pid" in answer) inHand.answer.resolve(answer.pid);
    else inHand.answer.reject(Object.assign(new Error(answer.message), { code: answer.code }) satisfies Refusal);
  }

  /** It answers no more. What it had in hand runs if its pid is known; what waits has not begun, and never does. */
  #ended(thread: Worker, [number, pid = 0]: Int32Array): void {
    if (this.#thread === thread) this.#thread = undefined;
    const inHand = this.#inHand;
    if (inHand !== undefined) this.#letGo(inHand);
    const why = refused("EAGAIN", "the thread that starts programs has ended");
    if (inHand?.number === number && pid > 0) inHand?.answer.resolve(pid);
    else inHand?.answer.reject(why);
    this.#refuseWaiting(why);
  }

  #refuseWaiting(why: Error): void {
    for (const { answer } of this.#waiting) answer.reject(why);
    this.#waiting.clear();
  }

  #letGo({ cancelHeld }: InHand): void {
    cancelHeld();
    this.#isHeld = false;
    this.#inHand = undefined;
  }
}
