import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { constants } from "node:os";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import { parentOf } from "./process-identity.ts";

/** How one run of a container ended. Every process of the pod is gone when this is known. */
export interface ContainerExit {
  /** The command's exit code; 128 + the signal's number when a signal ended it. */
  readonly code: number;
  /** Whether the command ever ran. */
  readonly started: boolean;
  /** The last lines of output where the command never ran: why it could not be set up. */
  readonly complaint: string;
}

export interface LaunchPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /**
   * Undefined where the kernel ends everything with PID 1. Without namespaces the launched process itself is the pod's PID 1,
   * and this ends what it left behind.
   */
  readonly endSurvivors: (() => Promise<void>) | undefined;
  /** Receives stdout and stderr; not ended. */
  readonly output: Writable;
  /** Called before the command may run, with the pid of the pod's PID 1 as the node sees it. */
  readonly beforeStart: (initPid: number) => Promise<void>;
}

const complaintBytes = 2048;
const lastWordsMs = 500;
const lastWordsLateMs = 10_000;
const killedCode = 128 + constants.signals.SIGKILL;

/**
 * One run of a container: a chain of processes whose last is PID 1 of the pod, speaking with the node over fd 3
 * (scripts/pod-init.sh). The launcher ends only after PID 1 did, and PID 1 only after every other process of its
 * namespace: so the launcher's own end proves that nothing is left.
 */
export class ContainerProcess {
  /** Resolves when the command runs, or when it never will. */
  readonly settled: Promise<{ readonly started: boolean }>;
  readonly ended: Promise<ContainerExit>;
  readonly #child: ChildProcess;
  readonly #ownPidNamespace: boolean;
  #initPid: number | undefined;
  #started = false;
  #over = false;
  /** The command's exit code as PID 1 told it. */
  #saidCode: number | undefined;
  #complaint = "";

  constructor(plan: LaunchPlan) {
    this.#ownPidNamespace = plan.endSurvivors === undefined;
    const settled = Promise.withResolvers<{ started: boolean }>();
    const ended = Promise.withResolvers<ContainerExit>();
    this.settled = settled.promise;
    this.ended = ended.promise;

    this.#child = spawn(plan.file, plan.args, {
      env: plan.env,
      cwd: "/",
      // A launcher's own complaints (unshare has one for a PID 1 that was killed) are not the container's output, which
      // has fd 4 to itself then.
      stdio: ["ignore", "pipe", "pipe", "pipe", ...(this.#ownPidNamespace ? (["pipe"] as const) : [])],
      // A session of its own: an interrupt typed at the node's terminal is not the pods'. Without namespaces the group is
      // also the only handle on what the pod starts.
      detached: true,
    });
    if (!this.#ownPidNamespace) this.#initPid = this.#child.pid;

    // Node gives no streams at all to a child that found no file descriptors; its "error" follows.
    const stdio: ChildProcess["stdio"] | undefined = this.#child.stdio;
    const channel = stdio?.[3];
    const stderr = this.#ownPidNamespace ? stdio?.[4] : this.#child.stderr;
    const streams = new Set([this.#child.stdout, this.#child.stderr, stderr].filter((each) => each instanceof Socket));
    for (const stream of streams) {
      stream.on("error", () => undefined); // a reset at the end of the process says nothing that its exit does not
      stream.on("data", (chunk: Buffer) => this.#keepComplaint(chunk));
      if (stream === this.#child.stdout || stream === stderr) stream.pipe(plan.output, { end: false });
    }
    if (channel instanceof Socket) {
      channel.on("error", () => undefined);
      const lines = createInterface({ input: channel });
      lines.on("line", (line) => {
        if (line.startsWith("pid ")) this.#initPid ??= Number(line.slice(4));
        else if (line === "ready") this.#allow(plan, channel);
        else if (line === "started") {
          this.#started = true;
          settled.resolve({ started: true });
        } else if (line.startsWith("exit ")) this.#saidCode = Number(line.slice(5));
      });
    }

    const over = (code: number) => {
      if (this.#over) return;
      this.#over = true;
      // Left to themselves they would stay open: once `output` has ended, nobody reads them to their end.
      for (const stream of [channel, ...streams]) if (stream instanceof Socket) stream.destroy();
      settled.resolve({ started: this.#started });
      const complaint = this.#started ? "" : this.#complaint.trim();
      // A command that ran and of whose end PID 1 said nothing: both were killed.
      const killed = this.#started && this.#saidCode === undefined;
      const exit = { code: killed ? killedCode : (this.#saidCode ?? code), started: this.#started, complaint };
      if (plan.endSurvivors === undefined) ended.resolve(exit);
      else plan.endSurvivors().then(() => ended.resolve(exit), ended.reject);
    };
    this.#child.once("error", (error) => {
      this.#complaint = error.message;
      if (this.#child.pid === undefined) over(127);
    });
    this.#child.once("exit", (code, signal) => {
      const ending = code ?? 128 + (signal === null ? 0 : constants.signals[signal]);
      // At once: later the group's number may be somebody else's.
      if (!this.#ownPidNamespace) this.#signalGroup("SIGKILL");
      // Its last words may still be in the pipes, and a busy node reads them late. Without namespaces a survivor can hold
      // the pipes open: not for long.
      const patience = setTimeout(() => over(ending), this.#ownPidNamespace ? lastWordsLateMs : lastWordsMs);
      this.#child.once("close", () => {
        clearTimeout(patience);
        over(ending);
      });
    });
  }

  /** PID 1 of the pod and its launcher as the node sees them, undefined unless the command runs. */
  get running(): { readonly initPid: number; readonly launcherPid: number } | undefined {
    const { pid } = this.#child;
    if (!this.#started || this.#over || this.#initPid === undefined || pid === undefined) return undefined;
    return { initPid: this.#initPid, launcherPid: pid };
  }

  /** Asks the command to end. One that is still being set up is asked as soon as it runs. */
  async terminate(): Promise<void> {
    const { started } = await this.settled;
    if (started) await this.#signalInit("SIGTERM");
  }

  /** Ends every process of the pod. `ended` tells when they are gone. */
  async kill(): Promise<void> {
    if (this.#initPid === undefined)
      this.#child.kill("SIGKILL"); // PID 1 cannot go on: it waits for our answer
    else await this.#signalInit("SIGKILL");
    if (!this.#ownPidNamespace && this.#child.exitCode === null && this.#child.signalCode === null)
      this.#signalGroup("SIGKILL");
  }

  #allow(plan: LaunchPlan, channel: Socket): void {
    const refuse = (error: unknown) => {
      this.#complaint = error instanceof Error ? error.message : String(error);
      channel.destroy();
    };
    if (this.#initPid === undefined) refuse(new Error("the pod's PID 1 did not tell its pid"));
    else plan.beforeStart(this.#initPid).then(() => channel.write("go\n"), refuse);
  }

  async #signalInit(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    const { pid } = this.#child;
    const init = this.#initPid;
    if (this.#over || pid === undefined || init === undefined) return;
    // The pid may be anybody's once the launcher reaped PID 1; only while it is the launcher's child it is ours.
    if (init !== pid && (await parentOf(init)) !== pid) return;
    if (this.#over) return;
    try {
      process.kill(init, signal);
    } catch (error) {
      if (!isNoSuchProcess(error)) throw error;
    }
  }

  #signalGroup(signal: "SIGKILL"): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if (!isNoSuchProcess(error)) throw error;
    }
  }

  #keepComplaint(chunk: Buffer): void {
    if (!this.#started) this.#complaint = (this.#complaint + chunk.toString("utf8")).slice(-complaintBytes);
  }
}

function isNoSuchProcess(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ESRCH";
}
