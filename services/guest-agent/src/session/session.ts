import type { Clock } from "@holdfast/async";
import { attachmentKeptMs, drainDefaultMs, sessionRingMaxBytes } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";
import { type Belonging, belongingOf, leaderGone } from "../execution/belonging.ts";
import { Drain } from "../execution/drain.ts";
import type { LogBudget } from "../execution/log-budget.ts";
import { OutputLog } from "../execution/output-log.ts";
import type { TerminalSize } from "../libc/terminal-calls.ts";
import type { ExitStatus } from "../spawn/spawner.ts";
import { Attachments } from "./attachments.ts";
import { endSession } from "./end-session.ts";
import { launchSession, type SessionCalls, type SessionProgram } from "./launch-session.ts";
import type { SessionWish } from "./session-wish.ts";

export interface SessionExit {
  readonly status: ExitStatus;
  /** Set when the program could not be started. */
  readonly message: string;
  readonly atMs: number;
}

export interface SessionNeeds {
  readonly clock: Clock;
  readonly budget: LogBudget;
  readonly calls: SessionCalls;
}

/** One program that outlives its connections: what it writes, who reads it, its end. */
export class Session {
  /** Without its environment, which is let go once the program has it. */
  readonly wish: SessionWish;
  readonly log: OutputLog;
  readonly attachments: Attachments;
  readonly startedAtMs: number;
  /** Resolves once `exit` is set. */
  readonly ended: Promise<void>;
  lastInputAtMs: number | undefined;
  lastOutputAtMs: number | undefined;
  size: TerminalSize;
  readonly #endedNow = Promise.withResolvers<void>();
  readonly #needs: SessionNeeds;
  readonly #marker: string;
  readonly #watchers = new Set<() => void>();
  /** Told when the program runs, while it is being started. */
  readonly #atStart: (() => void)[] = [];
  #program: SessionProgram | undefined;
  /** The client that it is bound to has gone while the program was being started. */
  #isAbandoned = false;
  #belonging: Belonging | undefined;
  #exit: SessionExit | undefined;
  #disposed = false;
  #cancelUnattended: () => void = () => undefined;

  /** `marker`: an environment entry that only this session's processes inherit, `NAME=value`. */
  constructor(wish: SessionWish, marker: string, needs: SessionNeeds) {
    this.wish = { ...wish, env: {} };
    this.#marker = marker;
    this.#needs = needs;
    this.size = wish.size;
    this.startedAtMs = needs.clock.now();
    this.ended = this.#endedNow.promise;
    this.log = new OutputLog(sessionRingMaxBytes, needs.budget);
    this.attachments = new Attachments({
      sessionId: wish.id,
      clock: needs.clock,
      write: (bytes) => this.#write(bytes),
      onAttended: (attended, byClient) => this.#attended(attended, byClient),
    });
  }

  /** Undefined: it runs. */
  get exit(): SessionExit | undefined {
    return this.#exit;
  }

  /** 0 when the program could not be started. */
  get pid(): number {
    return this.#program?.pid ?? 0;
  }

  /** Its processes, also after its end; undefined when there never were any. */
  get belonging(): Belonging | undefined {
    return this.#belonging;
  }

  /**
   * Starts the program. Rejects with AnsweredError when the guest could not, as `admit` (see `launchSession`), and where its client went
   * before it was begun; nothing runs then.
   */
  async start(cwd: string, env: Readonly<Record<string, string>>, admit: () => void): Promise<void> {
    const { calls, clock } = this.#needs;
    const launched = await launchSession(this.wish, cwd, env, calls, this.#admitting(admit));
    if (launched.t === "not-started") {
      this.#end({ code: launched.code }, launched.message);
      return;
    }
    const { program } = launched;
    this.#program = program;
    this.#belonging = belongingOf(program.pid, this.#marker);
    const drain = new Drain([program.output], drainDefaultMs);
    program.output.on("data", (bytes: Buffer) => {
      if (this.#exit !== undefined) return; // A leftover of a detached program goes on; what it writes after the end is nobody's.
      drain.heard();
      this.lastOutputAtMs = clock.now();
      this.log.append("stdout", bytes);
      this.#changed();
    });
    void program.exited.then((status) => this.#leaderEnded(program, drain, status));
    this.attachments.keep();
    for (const tell of this.#atStart.splice(0)) tell();
    if (this.wish.clientBound) this.#attended(false, this.#isAbandoned);
  }

  #admitting(admit: () => void): () => void {
    return () => {
      admit();
      if (this.#isAbandoned) throw abandoned(this.wish.id);
    };
  }

  /** Ends it once its program runs, at once if it does: see `endSession`. Without an effect where it is never begun. */
  endOnceStarted(signal: NodeJS.Signals, admit: () => void): void {
    const end = (): void => {
      endSession(this, signal, admit).catch((error) => console.error(`session ${this.wish.id}:`, error));
    };
    if (this.#program === undefined) this.#atStart.push(end);
    else end();
  }

  resize(size: TerminalSize): void {
    this.#program?.terminal?.resize(size);
    this.size = size;
  }

  /** The process group that a signal to the session is for; undefined when there is none. */
  get foregroundGroup(): number | undefined {
    const group = this.#program?.terminal?.foregroundGroup() ?? this.#belonging?.leader;
    return group !== undefined && group > 1 ? group : undefined;
  }

  /** Calls back when there is more output, or the end. Returns how to stop. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => {
      this.#watchers.delete(watcher);
      if (this.#disposed) this.dispose();
    };
  }

  /** Lets its memory go, at once or when its last reader has had it. It is not started again. */
  dispose(): void {
    this.#disposed = true;
    if (this.#watchers.size === 0) this.log.dispose();
  }

  #write(bytes: Uint8Array): number {
    const taken = this.#program?.terminal?.write(bytes) ?? 0;
    if (taken > 0) this.lastInputAtMs = this.#needs.clock.now();
    return taken;
  }

  /** A program that is bound to its client ends with it, or a while after nobody attends to it. */
  #attended(attended: boolean, byClient: boolean): void {
    this.#cancelUnattended();
    this.#cancelUnattended = () => undefined;
    if (attended || !this.wish.clientBound || this.#exit !== undefined) return;
    if (this.#program === undefined) this.#isAbandoned ||= byClient;
    else if (byClient) this.#endUnasked();
    else this.#cancelUnattended = this.#needs.clock.schedule(attachmentKeptMs, () => this.#endUnasked());
  }

  #endUnasked(): void {
    endSession(this, "SIGKILL", () => undefined).catch((error) => console.error(`session ${this.wish.id}:`, error));
  }

  async #leaderEnded(program: SessionProgram, drain: Drain, status: ExitStatus): Promise<void> {
    if (this.#belonging) leaderGone(this.#belonging);
    // Everything that it wrote is there before its end is told (G22): until all have closed their side, or nothing comes any more.
    await drain.wait();
    // A terminal goes with its program, as everywhere: what still holds it is hung up on. A pipe's leftovers may write on.
    if (program.terminal) program.output.destroy();
    this.#end(status, "");
  }

  #end(status: ExitStatus, message: string): void {
    this.#cancelUnattended();
    this.#exit = { status, message, atMs: this.#needs.clock.now() };
    this.attachments.close();
    this.#endedNow.resolve();
    this.#changed();
  }

  #changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

function abandoned(id: string): AnsweredError {
  return new AnsweredError(
    "SESSION_NOT_FOUND",
    `Session ${id} was not begun: the client that it was to end with had gone before.`,
    { session_id: id },
  );
}
