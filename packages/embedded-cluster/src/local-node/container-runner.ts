import type { Writable } from "node:stream";
import type { Logger } from "pino";
import type { KubeObject } from "../resource-api.ts";
import type { ContainerPlan } from "./container-plan.ts";
import { type ContainerProbesListener, probeContainer } from "./container-probes.ts";
import { type ContainerExit, ContainerProcess } from "./container-process.ts";
import { type ContainerView, mayRestart, type Termination } from "./container-view.ts";
import type { RecordEvent } from "./event-recorder.ts";
import { sleep } from "./follow.ts";
import { awaitImage, type ImageSource } from "./image-pull.ts";
import { callAfter } from "./long-timer.ts";
import type { ContainerLaunch } from "./pod-launch.ts";
import type { RestartPolicy } from "./pod-plan.ts";
import { runCommand } from "./probe-attempt.ts";
import { kubeTime } from "./resources.ts";
import { type BackoffSpan, RestartBackoff } from "./restart-backoff.ts";
import type { Slots } from "./slots.ts";
import { UnprovenEndError } from "./unproven-end-error.ts";

/** One container as its pod gives it to be run. */
export interface ContainerTask {
  readonly pod: KubeObject;
  readonly plan: ContainerPlan;
  readonly launch: ContainerLaunch;
  /** It prepares the pod and is run to its end. */
  readonly isInit: boolean;
  /** Of an init container never "Always". */
  readonly policy: RestartPolicy;
  readonly graceMs: number;
  readonly ip: string;
  readonly output: Writable;
  readonly images: ImageSource;
  readonly execProbes: Slots;
  /** Bounds the containers that are set up at once. */
  readonly starts: Slots;
  readonly backoff: BackoffSpan;
  readonly record: RecordEvent;
  readonly log: Logger;
  readonly view: () => ContainerView;
  readonly set: (change: Partial<ContainerView>) => void;
  /** As `set`, but stored only with the next change. */
  readonly note: (change: Partial<ContainerView>) => void;
}

/** A set-up that takes longer holds up no other. */
const slowStartMs = 10_000;

/** Runs one container, again and again as its policy says, until it is over or told to stop. */
export class ContainerRunner {
  readonly #task: ContainerTask;
  readonly #backoff: RestartBackoff;
  readonly #stopping = new AbortController();
  /** When what runs is killed; moved only to earlier. */
  #killAt = Number.POSITIVE_INFINITY;
  #cancelKill: () => void = () => undefined;
  #process: ContainerProcess | undefined;
  /** The run that was asked to end: once is enough. */
  #asked: ContainerProcess | undefined;

  constructor(task: ContainerTask) {
    this.#task = task;
    this.#backoff = new RestartBackoff(task.backoff);
  }

  /** Resolves when it runs no more: it ended for good, or was told to stop and has. Rejects with an UnprovenEndError. */
  async run(): Promise<void> {
    const { policy, view, note } = this.#task;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const before = view().state; // of an earlier life of the node, or of the turn before
      if ("terminated" in before && !mayRestart(policy, before.terminated.exitCode)) return;
      if (!(await awaitImage(this.#task, signal))) return;
      const began = Date.now();
      const exit = await this.#runOnce();
      if (exit === undefined || signal.aborted || !mayRestart(policy, exit.code)) return;
      await this.#backOff(this.#backoff.nextMs(Date.now() - began), exit);
      if (signal.aborted) return;
      const { state, restartCount } = view();
      const ended = "terminated" in state ? { lastTermination: state.terminated } : {};
      note({ ...ended, restartCount: restartCount + 1 });
    }
  }

  /** Has it stop by then, asking first; a later call can only bring the time forward. */
  stop(killAt: number): void {
    this.#killBy(killAt);
    if (this.#stopping.signal.aborted) return;
    this.#stopping.abort();
    if (this.#process === undefined) return;
    const { pod, plan, record } = this.#task;
    record(pod, "Normal", "Killing", `Stopping container ${plan.name}`);
    this.#terminate(this.#process);
  }

  /** Ends what runs now by SIGKILL, as a crash does. Resolves when it has ended; false where nothing ran. */
  async kill(): Promise<boolean> {
    const process = this.#process;
    if (process === undefined) return false;
    await process.kill();
    await process.ended;
    return true;
  }

  /** Starts the container and waits for its end, probing meanwhile. Undefined when it was told to stop first. */
  async #runOnce(): Promise<ContainerExit | undefined> {
    const { pod, plan, launch, record, set, view, starts } = this.#task;
    const begun = await starts.run(() => this.#begin());
    if (begun === undefined) return undefined;
    if ("failed" in begun) return this.#notCreated(begun.failed);
    const { process } = begun;
    const probing = new AbortController();
    const { started } = await process.settled;
    const startedAt = kubeTime(new Date());
    const containerId = `holdfast://${pod.metadata.uid}/${plan.name}/${view().restartCount}`;
    if (started) {
      record(pod, "Normal", "Started", `Started container ${plan.name}`);
      set({
        state: { running: { startedAt } },
        containerId,
        started: plan.startup === undefined,
        ready: plan.startup === undefined && plan.readiness === undefined,
      });
      this.#probe(process, probing.signal);
    }
    const exit = await process.ended.catch((error: unknown) => {
      probing.abort();
      throw new UnprovenEndError(plan.name, error);
    });
    this.#process = undefined;
    this.#cancelKill();
    // A restart for failed liveness had its own deadline; the next run's stop has another.
    if (!this.#stopping.signal.aborted) this.#killAt = Number.POSITIVE_INFINITY;
    probing.abort();
    const { ranOutOfMemory } = await launch.afterEnd().catch((error: unknown) => {
      this.#task.log.warn({ err: error }, "whether a container ran out of memory is not known");
      return { ranOutOfMemory: false };
    });
    const { complaint } = exit;
    const terminated: Termination = {
      exitCode: exit.code,
      reason: reasonOf(exit, ranOutOfMemory),
      ...(complaint === "" ? {} : { message: complaint }),
      startedAt,
      finishedAt: kubeTime(new Date()),
      containerID: containerId,
    };
    if (!exit.started && !this.#stopping.signal.aborted)
      record(pod, "Warning", "Failed", `Error: the container was not started: ${complaint}`);
    // As a kubelet shows it: what prepared the pod, and has, counts as ready.
    set({ state: { terminated }, started: false, ready: this.#task.isInit && exit.code === 0 });
    return exit;
  }

  /** Sets the container up. Resolves when it runs or never will, or when that takes too long to have others wait for it. */
  async #begin(): Promise<{ readonly process: ContainerProcess } | { readonly failed: string } | undefined> {
    const { pod, plan, launch, record, output } = this.#task;
    if (this.#stopping.signal.aborted) return undefined;
    const prepared = await launch.launchPlan(output).catch((error: unknown) => ({ failed: messageOf(error) }));
    if ("failed" in prepared) return prepared;
    record(pod, "Normal", "Created", `Created container: ${plan.name}`);
    const process = new ContainerProcess(prepared);
    this.#process = process;
    if (this.#stopping.signal.aborted) this.#terminate(process);
    const settled = new AbortController();
    const end = () => settled.abort();
    process.settled.then(end, end);
    await sleep(slowStartMs, settled.signal);
    return { process };
  }

  #notCreated(message: string): ContainerExit {
    const { pod, record, set } = this.#task;
    record(pod, "Warning", "Failed", `Error: the container was not created: ${message}`);
    const now = kubeTime(new Date());
    set({
      state: { terminated: { exitCode: 128, reason: "StartError", message, startedAt: now, finishedAt: now } },
      started: false,
      ready: false,
    });
    return { code: 128, started: false, complaint: message };
  }

  async #backOff(delayMs: number, exit: ContainerExit): Promise<void> {
    if (delayMs === 0) return;
    const { pod, plan, record, set, view } = this.#task;
    const { name, namespace, uid } = pod.metadata;
    const message = `back-off ${delayMs / 1000}s restarting failed container=${plan.name} pod=${name}_${namespace}(${uid})`;
    record(
      pod,
      "Warning",
      "BackOff",
      `Back-off restarting failed container ${plan.name} in pod ${name}_${namespace}(${uid})`,
    );
    const { state } = view();
    const ended = "terminated" in state ? state.terminated : undefined;
    const reason = exit.started ? "CrashLoopBackOff" : "RunContainerError";
    set({ state: { waiting: { reason, message } }, lastTermination: ended });
    await sleep(delayMs, this.#stopping.signal);
  }

  #probe(process: ContainerProcess, signal: AbortSignal): void {
    const { pod, plan, launch, record, set, ip, execProbes } = this.#task;
    const inside = (command: readonly string[]) =>
      process.running === undefined ? undefined : launch.inside(command, process.running);
    const listener: ContainerProbesListener = {
      onStarted: () => set({ started: true, ready: plan.readiness === undefined }),
      onReady: (ready) => set({ ready }),
      onFailure: (kind, message) => record(pod, "Warning", "Unhealthy", `${kind} probe failed: ${message}`),
      onUnhealthy: (kind, graceMs) => {
        const why = `Container ${plan.name} failed ${kind.toLowerCase()} probe, will be restarted`;
        record(pod, "Normal", "Killing", why);
        this.#killBy(Date.now() + (graceMs ?? this.#task.graceMs));
        this.#terminate(process);
      },
    };
    probeContainer(plan, { ip, inside, execProbes }, listener, signal).catch((error: unknown) =>
      this.#task.log.error({ err: error }, "probing stopped"),
    );
  }

  /** Asks the process to end, after what the container wants done first; that is a part of its grace. */
  #terminate(process: ContainerProcess): void {
    this.#armKill();
    if (this.#asked === process) return;
    this.#asked = process;
    this.#preStop(process)
      .then(() => process.terminate())
      .catch((error: unknown) => this.#task.log.error({ err: error }, "TERM was not sent"));
  }

  async #preStop(process: ContainerProcess): Promise<void> {
    const { pod, plan, launch, record } = this.#task;
    const { running } = process;
    if (plan.preStop === undefined || running === undefined) return;
    const within = new AbortController();
    const end = () => within.abort();
    process.ended.then(end, end);
    if (plan.preStop.t === "sleep") return sleep(plan.preStop.ms, within.signal);
    const { ok, message } = await runCommand(launch.inside(plan.preStop.command, running), within.signal);
    if (!ok) record(pod, "Warning", "FailedPreStopHook", `PreStopHook failed: ${message}`);
  }

  #killBy(at: number): void {
    this.#killAt = Math.min(this.#killAt, at);
    this.#armKill();
  }

  #armKill(): void {
    this.#cancelKill();
    const process = this.#process;
    if (process === undefined || this.#killAt === Number.POSITIVE_INFINITY) return;
    this.#cancelKill = callAfter(this.#killAt - Date.now(), () => {
      process.kill().catch((error: unknown) => this.#task.log.error({ err: error }, "KILL was not sent"));
    });
  }
}

function reasonOf(exit: ContainerExit, ranOutOfMemory: boolean): string {
  if (!exit.started) return "StartError";
  if (ranOutOfMemory && exit.code !== 0) return "OOMKilled";
  return exit.code === 0 ? "Completed" : "Error";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
