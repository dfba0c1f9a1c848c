import type { Socket } from "node:net";
import type { Clock } from "@holdfast/async";
import {
  cancelConfirmMs,
  cancelGraceDefaultMs,
  executionLogMaxBytes,
  leftoversNamedMax,
  orphanAfterMs,
  retainedExecutionLogMaxBytes,
} from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import type { ExitStatus } from "../spawn/spawner.ts";
import { type Belonging, belongingOf, leaderGone } from "./belonging.ts";
import { Drain } from "./drain.ts";
import { EndingWithdrawn, endProcesses } from "./end-processes.ts";
import type { KeptInput } from "./input-budget.ts";
import { type LaunchNeeds, launch } from "./launch.ts";
import type { LogBudget } from "./log-budget.ts";
import { membersOf, recentMembersOf } from "./members.ts";
import { type Channel, OutputLog } from "./output-log.ts";
import type { Process } from "./processes.ts";
import { signalGroup } from "./signal-group.ts";
import type { SignalName } from "./signals.ts";
import type { StartWish } from "./start-wish.ts";
import type { Input, InputTaken, InputTurn, StreamedInput } from "./streamed-input.ts";
import { startHeld, survived, type ToldToEnd, unseen } from "./unconfirmed-end.ts";

/** Why the agent ended a command. */
export type EndCause = "cancelled" | "timed-out" | "client-closed" | "orphaned" | "agent-stopped";

export interface ExitResult {
  readonly status: ExitStatus;
  /** Set when the program could not be started. */
  readonly message: string;
  readonly cause: EndCause | undefined;
  readonly outputOpen: boolean;
  readonly leftovers: readonly Process[];
  readonly ranMs: number;
}

/** Where a command stands. `unconfirmed`: processes survived SIGKILL; it becomes `ended` once they are seen gone. */
export type ExecutionState =
  | { readonly t: "running" }
  | { readonly t: "unconfirmed"; readonly survivors: readonly Process[] }
  | { readonly t: "ended"; readonly exit: ExitResult };

/** A reader that the program waits for. */
export interface Owner {
  /** Up to where it has been given the output. */
  readonly position: number;
}

/** How a command's client went: `closed` by its own wish, or lost, or it leaves the command running on purpose. */
export type Departure = "closed" | "lost" | "left-running";

/** What every execution shares with the others. */
export interface ExecutionNeeds extends LaunchNeeds {
  readonly budget: LogBudget;
  readonly clock: Clock;
}

/** How a program is started. */
export interface ExecutionStart {
  /** Where; asked once, first. Rejects when it is not to be started. */
  readonly directory: () => Promise<string>;
  readonly environment: Record<string, string>;
  /** Throws when it may not be begun any more; asked in the step in which it would be. */
  readonly admit: () => void;
}

/** What runs, once it does. */
interface Program {
  readonly outputs: readonly Socket[];
  readonly input: StreamedInput | undefined;
  readonly belonging: Belonging;
  readonly drain: Drain;
}

/** Undelivered bytes at which the program's outputs are no longer read: half the log, as both pipes may bring 64 KiB more. */
const holdAtBytes = executionLogMaxBytes / 2;
const finishRetryMs = 1_000;
const nothing = new Uint8Array();

/** One command: its processes, its log, its end. */
export class Execution {
  /** Without its input and environment, which are let go once it has them. */
  readonly wish: StartWish;
  readonly log: OutputLog;
  /** Resolves once `state` is `ended`. */
  readonly ended: Promise<void>;
  readonly #endedNow = Promise.withResolvers<void>();
  readonly #leaderGone = Promise.withResolvers<void>();
  readonly #clock: Clock;
  readonly #needs: ExecutionNeeds;
  readonly #marker: string;
  readonly #watchers = new Set<() => void>();
  #starting: Promise<void> | undefined;
  #startedAtMs = 0;
  #startedAtWallMs = 0;
  #program: Program | undefined;
  #state: ExecutionState = { t: "running" };
  #leaderExit: { readonly status: ExitStatus; readonly ranMs: number } | undefined;
  #endCause: EndCause | undefined;
  #ending: Promise<readonly Process[]> | undefined;
  /** Of those who wish the ending that is under way: each throws once it may not wish it any more. */
  readonly #enders = new Set<() => void>();
  #finishing: Promise<void> | undefined;
  #owner: Owner | undefined;
  #held = false;
  #cancelTimeout: () => void = () => undefined;
  #cancelOrphan: () => void = () => undefined;

  constructor(wish: StartWish, marker: string, needs: ExecutionNeeds) {
    const { budget, clock } = needs;
    this.wish = { ...wish, stdin: nothing, env: {} };
    this.#needs = needs;
    this.#clock = clock;
    this.ended = this.#endedNow.promise;
    this.#marker = marker;
    this.log = new OutputLog(wish.retainOutput ? retainedExecutionLogMaxBytes : executionLogMaxBytes, budget);
  }

  get state(): ExecutionState {
    return this.#state;
  }

  /** Pid of the leader; 0 when there never was one. */
  get pid(): number {
    return this.#program?.belonging.leader ?? 0;
  }

  /** Settles when the start has; see `start`. */
  get started(): Promise<void> {
    return this.#starting ?? Promise.reject(new Error("never started"));
  }

  /** When it was started, by the wall clock. */
  get startedAtMs(): number {
    return this.#startedAtWallMs;
  }

  /** Somebody reads it for whom the program waits. */
  get hasClient(): boolean {
    return this.#owner !== undefined;
  }

  /** True while somebody reads it. */
  get isFollowed(): boolean {
    return this.#watchers.size > 0;
  }

  /**
   * Starts the program; only the first call does. Rejects with AnsweredError when the guest could not; nothing runs then, and the
   * input is still the caller's to release. Else it is released once the program has it, or nobody can read it any more.
   */
  start(how: ExecutionStart, input: KeptInput): Promise<void> {
    this.#starting ??= this.#start(how, input);
    return this.#starting;
  }

  /**
   * Ends everything of it: SIGTERM, grace, SIGKILL. Concurrent calls share one ending. Resolves once nothing is left, which may
   * be before a slow reader has had the output and the result stands; rejects with CANCELLATION_UNCONFIRMED naming what
   * survived, or where its start takes longer than an ending may: it is ended then once it runs. False: it had ended, and nothing was done. `admit` throws once the caller may not go on: nothing is signalled for it then,
   * and it rejects with that.
   */
  async end(cause: EndCause, graceMs = cancelGraceDefaultMs, admit = (): void => undefined): Promise<boolean> {
    if (!(await this.#isStarted())) {
      void this.started.then(
        () => this.#endUnasked(cause, graceMs, admit),
        () => undefined, // Nothing was begun.
      );
      throw startHeld(this.#told);
    }
    const program = this.#program;
    if (program === undefined || (await this.#isOver(program))) return false;
    if (this.#hasEnded) return false; // During that look: its result may name what was left.
    admit();
    this.expectEnd(cause);
    let survivors: readonly Process[];
    try {
      survivors = await this.#endAll(program, graceMs, admit);
    } catch (error) {
      if (!(error instanceof EndingWithdrawn)) throw unseen(this.#told, error);
      admit(); // Told in its own numbers; one who may go on came too late for that ending, and begins another.
      return this.end(cause, graceMs, admit);
    }
    if (survivors.length > 0) throw survived(this.#told, survivors);
    void this.#finish(program);
    await this.#leaderGone.promise;
    return true;
  }

  /** Waits until its start is settled, for as long as an ending may take. False: it is not. */
  async #isStarted(): Promise<boolean> {
    if (this.#program !== undefined || this.#hasEnded || this.#starting === undefined) return true;
    const late = Promise.withResolvers<boolean>();
    const cancelLate = this.#clock.schedule(cancelConfirmMs, () => late.resolve(false));
    const settled = this.#starting.then(
      () => true,
      () => true, // Its starter is told; here there is nothing to end.
    );
    return await Promise.race([settled, late.promise]).finally(cancelLate);
  }

  get #told(): ToldToEnd {
    return { kind: "execution", id: this.wish.id };
  }

  get #hasEnded(): boolean {
    return this.#state.t === "ended";
  }

  /** It has ended, or nothing of it is left and its result is being made: a reader may hold that up, and a look takes its time. */
  async #isOver(program: Program): Promise<boolean> {
    if (this.#hasEnded) return true;
    if (this.#leaderExit === undefined || this.#ending !== undefined || this.#state.t === "unconfirmed") return false;
    return (await membersOf(program.belonging)).length === 0 && this.#ending === undefined;
  }

  /** What ends it from here on, unless it has ended already, is put down to this cause. Nothing is signalled. */
  expectEnd(cause: EndCause): void {
    if (this.#leaderExit === undefined) this.#endCause ??= cause;
  }

  /** Sends a signal to its process group. False: it had ended, and nothing was signalled. */
  async signal(signal: SignalName, admit: () => void): Promise<boolean> {
    await this.#starting?.catch(() => undefined); // Its starter is told; here there is nothing to signal.
    const program = this.#program;
    if (this.#state.t === "ended" || program === undefined) return false;
    return signalGroup(program.belonging, signal, admit);
  }

  /** Feeds it. Rejects with INVALID_REQUEST where its input was not to be streamed. */
  async write(input: Input, turn: InputTurn): Promise<InputTaken> {
    await this.#starting?.catch(() => undefined); // Its starter is told.
    if (!this.wish.streamedStdin) throw notStreamed(this.wish.id);
    // A program that could not be started takes no input.
    return (await this.#program?.input?.write(input, turn)) ?? { nextOffset: 0, closed: true };
  }

  /** Looks whether what survived a kill has gone since; if so, it goes on to its end. */
  async lookAgain(): Promise<void> {
    if (this.#state.t === "unconfirmed" && this.#program !== undefined) await this.#finish(this.#program);
  }

  /** Makes this reader the one that the program waits for, in place of any other. */
  adopt(owner: Owner): void {
    this.#cancelOrphan();
    this.#owner = owner;
    this.applyHold();
  }

  /** The reader is gone. Nothing, if another took its place. */
  disown(owner: Owner, how: Departure): void {
    if (this.#owner !== owner) return;
    this.#owner = undefined;
    this.applyHold();
    if (!this.wish.endsWithClient || this.#state.t === "ended" || how === "left-running") return;
    if (how === "closed") this.#endUnasked("client-closed");
    else this.#cancelOrphan = this.#clock.schedule(orphanAfterMs, () => this.#endUnasked("orphaned"));
  }

  /** Reads the program's outputs, or lets them wait: as far behind as the owner is. */
  applyHold(): void {
    const program = this.#program;
    if (program === undefined || this.#state.t === "ended") return;
    const held = this.#owner !== undefined && this.log.end - this.#owner.position >= holdAtBytes;
    if (held === this.#held) return;
    this.#held = held;
    program.drain.hold(held);
    for (const output of program.outputs) {
      if (held) output.pause();
      else output.resume();
    }
  }

  /** Calls back when `state` has changed. Returns how to stop. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  async #start({ directory, environment, admit }: ExecutionStart, whole: KeptInput): Promise<void> {
    this.#startedAtMs = this.#clock.monotonicMs();
    this.#startedAtWallMs = this.#clock.now();
    const cwd = await directory();
    const takesInput = this.wish.streamedStdin || whole.bytes.length > 0;
    const launched = await launch({ ...this.wish, takesInput }, cwd, environment, this.#needs, admit);
    if (launched.t === "not-started") {
      whole.release();
      const { code, message } = launched;
      this.#end({ status: { code }, message, outputOpen: false, leftovers: [], ranMs: 0 });
      return;
    }
    const { stdout, stderr, input } = launched;
    if (this.wish.streamedStdin || input === undefined) whole.release();
    else void giveWhole(input, whole);
    const program: Program = {
      outputs: [stdout, stderr],
      input,
      belonging: belongingOf(launched.program.pid, this.#marker),
      drain: new Drain([stdout, stderr], this.wish.drainMs),
    };
    this.#program = program;
    stdout.on("data", (bytes: Buffer) => this.#wrote(program, "stdout", bytes));
    stderr.on("data", (bytes: Buffer) => this.#wrote(program, "stderr", bytes));
    void launched.program.exited.then((status) => this.#leaderExited(program, status));
    if (this.wish.timeoutMs !== undefined) {
      this.#cancelTimeout = this.#clock.schedule(this.wish.timeoutMs, () => this.#endUnasked("timed-out"));
    }
    this.applyHold();
  }

  #wrote(program: Program, channel: Channel, bytes: Buffer): void {
    if (this.#state.t === "ended") return; // A leftover goes on; what it writes after the result is nobody's.
    program.drain.heard();
    this.log.append(channel, bytes);
    this.applyHold();
  }

  #leaderExited(program: Program, status: ExitStatus): void {
    this.#leaderExit = { status, ranMs: this.#clock.monotonicMs() - this.#startedAtMs };
    leaderGone(program.belonging);
    this.#leaderGone.resolve();
    this.#cancelTimeout();
    void this.#finish(program);
  }

  /** Makes the result once the leader has exited and no ending is under way. Joins one that is being made. */
  #finish(program: Program): Promise<void> {
    this.#finishing ??= this.#makeResult(program)
      .catch((error) => {
        // What is left of it could not be looked at: no end is made up, and it is tried until it can.
        console.error(`execution ${this.wish.id}: its end is not known yet: ${messageOf(error)}`);
        this.#clock.schedule(finishRetryMs, () => void this.#finish(program));
      })
      .finally(() => {
        this.#finishing = undefined;
      });
    return this.#finishing;
  }

  async #makeResult(program: Program): Promise<void> {
    if (this.#leaderExit === undefined || !(await this.#isConfirmed(program))) return;
    let outputOpen = !(await program.drain.wait());
    const look = this.wish.killsLeftovers ? membersOf : recentMembersOf;
    let leftovers: readonly Process[];
    do {
      if (!(await this.#isConfirmed(program))) return;
      leftovers = (await look(program.belonging)).slice(0, leftoversNamedMax);
    } while (this.#ending !== undefined); // It began during the look, and what was seen may be gone by its end.
    if (this.wish.killsLeftovers && leftovers.length > 0) {
      if ((await this.#endAll(program, cancelGraceDefaultMs)).length > 0) return;
      outputOpen = !(await program.drain.wait());
      if (!(await this.#isConfirmed(program))) return;
    }
    this.#end({ ...this.#leaderExit, message: "", outputOpen, leftovers });
  }

  /** False while something that was told to end is still there. Waits for endings that are under way: none is when it says true. */
  async #isConfirmed(program: Program): Promise<boolean> {
    for (;;) {
      await this.#ending?.catch(() => undefined); // Whoever asked for it is told.
      if (this.#state.t === "unconfirmed") {
        if ((await membersOf(program.belonging)).length > 0) return false;
        if (this.#ending === undefined && this.#state.t === "unconfirmed") this.#setState({ t: "running" });
      }
      if (this.#ending === undefined) return true;
    }
  }

  #endAll(program: Program, graceMs: number, admit = (): void => undefined): Promise<readonly Process[]> {
    this.#enders.add(admit);
    this.#ending ??= endProcesses(program.belonging, graceMs, () => this.#assertWished())
      .finally(() => {
        this.#ending = undefined;
        this.#enders.clear();
      })
      .then((survivors) => {
        if (survivors.length > 0) this.#setState({ t: "unconfirmed", survivors });
        else if (this.#state.t === "unconfirmed") this.#setState({ t: "running" });
        return survivors;
      });
    return this.#ending;
  }

  /** Throws when of all who wished the ending none may any more. */
  #assertWished(): void {
    let refusal: unknown;
    for (const admit of this.#enders) {
      try {
        admit();
        return;
      } catch (error) {
        refusal = error;
      }
    }
    throw refusal;
  }

  #endUnasked(cause: EndCause, graceMs = cancelGraceDefaultMs, admit = (): void => undefined): void {
    this.end(cause, graceMs, admit).catch((error) => console.error(`execution ${this.wish.id}: ${error.message}`));
  }

  #end(exit: Omit<ExitResult, "cause">): void {
    this.#cancelOrphan();
    this.#cancelTimeout();
    this.#program?.input?.close();
    this.#setState({ t: "ended", exit: { ...exit, cause: this.#endCause } });
    this.#endedNow.resolve();
  }

  #setState(state: ExecutionState): void {
    this.#state = state;
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** Apart from what lasts as long as the command: a function there that named its input would keep it for as long. */
async function giveWhole(input: StreamedInput, whole: KeptInput): Promise<void> {
  await input.give(whole.bytes);
  whole.release();
}

function notStreamed(id: string): AnsweredError {
  return new AnsweredError(
    "INVALID_REQUEST",
    `Nothing was written: execution ${id} was not started with streamed_stdin, and has the input that came with its start.`,
    { field: "execution_id", execution_id: id },
  );
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
