import { readFile, rm } from "node:fs/promises";
import type { Logger } from "pino";
import { isApiStatus } from "../api-status-error.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import type { AddressPool } from "./address-pool.ts";
import { ContainerLog } from "./container-log.ts";
import { type ContainerProbesListener, probeContainer } from "./container-probes.ts";
import { type ContainerExit, ContainerProcess } from "./container-process.ts";
import type { RecordEvent } from "./event-recorder.ts";
import { sleep, untilAborted } from "./follow.ts";
import { numberOf, recordOf, recordsOf, textOf } from "./json-shape.ts";
import { endLeftOver } from "./left-over.ts";
import { callAfter } from "./long-timer.ts";
import { type LaunchKit, type PodLaunch, podLaunchOf } from "./pod-launch.ts";
import { type PodPlan, planPod } from "./pod-plan.ts";
import { PodReport, type PodView, type Termination } from "./pod-report.ts";
import { kubeTime, pods, refOf } from "./resources.ts";
import { RestartBackoff } from "./restart-backoff.ts";
import type { Slots } from "./slots.ts";
import { StatusWriter } from "./status-writer.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";
import type { HeldVolume, VolumeStore } from "./volume-store.ts";

/** What all pods of a node share. */
export interface PodDependencies {
  readonly api: ResourceApi;
  readonly nodeName: string;
  readonly kit: LaunchKit;
  readonly addresses: AddressPool;
  readonly volumes: VolumeStore;
  readonly record: RecordEvent;
  /** Bounds the exec probes that run at once: twenty pods that start together need the processors themselves. */
  readonly execProbes: Slots;
  readonly log: Logger;
}

/** Why a pod is being stopped: its deletion, its object being gone already, or the node's own stop. */
type Leaving = "deleted" | "gone" | "nodeStop";

const imageBackoffMs = 10_000;
const deleteRetryMs = 1_000;
const leftOverPatienceMs = 1_000;
/** How long a stopping node waits for an API that does not take a pod's last words. */
const writePatienceMs = 5_000;

/** Runs one pod (one uid) from the first sight of it until nothing of it is left. */
export class PodRunner {
  readonly uid: string;
  /** Resolves when the pod is over for this node: everything ended and, unless the node stops, cleaned up. */
  readonly done: Promise<void>;
  readonly #takenUp = Promise.withResolvers<void>();
  readonly #deps: PodDependencies;
  readonly #report: PodReport;
  readonly #status: StatusWriter;
  readonly #output: ContainerLog;
  readonly #backoff = new RestartBackoff();
  /** Aborted when the pod is to stop, for whatever reason. */
  readonly #stopping = new AbortController();
  /** Aborted when its object is gone, or the node cannot wait for the API any longer. */
  readonly #unwritable = new AbortController();
  readonly #logPath: string;
  #pod: KubeObject;
  #leaving: Leaving | undefined;
  /** When the container that runs is killed; moved only to earlier. */
  #killAt = Number.POSITIVE_INFINITY;
  #cancelKill: () => void = () => undefined;
  #process: ContainerProcess | undefined;
  #held: HeldVolume[] = [];

  constructor(pod: KubeObject, deps: PodDependencies) {
    this.uid = pod.metadata.uid ?? "";
    this.#pod = pod;
    this.#deps = { ...deps, log: deps.log.child({ pod: pod.metadata.name, uid: this.uid }) };
    this.#report = new PodReport(pod, deps.addresses.hostIp);
    this.#status = new StatusWriter(deps.api, pod, this.#unwritable.signal, this.#deps.log);
    this.#logPath = deps.kit.paths.log(pod.metadata.namespace ?? "", pod.metadata.name, this.uid);
    const onLost = (error: unknown) => this.#deps.log.warn({ err: error }, "output of a container was not kept");
    this.#output = new ContainerLog(this.#logPath, onLost);
    this.done = this.#live();
    this.observe(pod);
  }

  /** Resolves when the object no longer claims what was true before the node stopped. */
  get takenUp(): Promise<void> {
    return this.#takenUp.promise;
  }

  /** Takes in the pod's object as it now is. */
  observe(pod: KubeObject): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp === undefined) return;
    const graceSeconds = numberOf(pod.metadata.deletionGracePeriodSeconds, 30);
    this.#leave("deleted", graceSeconds * 1000);
  }

  /** The object is gone: whatever still runs is killed. */
  forget(): void {
    this.#unwritable.abort();
    for (const held of this.#held) held.leave();
    this.#leave("gone", 0);
  }

  /** Stops the container and keeps the object, for the next start of the node. Resolves when all has ended. */
  async halt(graceMs: number): Promise<void> {
    this.#leave("nodeStop", graceMs);
    const patience = setTimeout(() => this.#unwritable.abort(), graceMs + writePatienceMs);
    await this.done;
    clearTimeout(patience);
  }

  #leave(why: Leaving, graceMs: number): void {
    this.#leaving ??= why;
    if (why === "gone") this.#leaving = why;
    this.#killBy(Date.now() + graceMs);
    if (!this.#stopping.signal.aborted) {
      this.#stopping.abort();
      if (this.#process !== undefined) {
        this.#deps.record(this.#pod, "Normal", "Killing", `Stopping container ${this.#container}`);
        this.#terminate(this.#process);
      }
    }
  }

  get #container(): string {
    return textOf(recordsOf(recordOf(this.#pod.spec).containers)[0]?.name) ?? "";
  }

  async #live(): Promise<void> {
    try {
      // What the object says of readiness and address is from before the node stopped.
      if (this.#report.view.interrupted) this.#set({});
      await this.#status.flush();
      this.#takenUp.resolve();
      await this.#endPredecessor();
      await this.#run();
    } catch (error) {
      if (error instanceof UnsupportedPodError) this.#reject(error);
      else {
        this.#deps.log.error({ err: error }, "the pod cannot be run");
        this.#deps.record(this.#pod, "Warning", "Failed", messageOf(error));
        this.#set({ state: { waiting: { reason: "CreateContainerError", message: messageOf(error) } } });
      }
    }
    await untilAborted(this.#stopping.signal);
    await this.#finish();
  }

  /** A process tree of an earlier life of the node may still be dying. Two must never share a disk. */
  async #endPredecessor(): Promise<void> {
    const path = this.#deps.kit.paths.processRecord(this.uid);
    const text = await readFile(path, "utf8").catch(() => undefined); // none was ever started
    if (text !== undefined) await endLeftOver(text, this.uid, leftOverPatienceMs, this.#deps.log);
  }

  async #run(): Promise<void> {
    const { phase } = this.#report.view;
    if (phase === "Succeeded" || phase === "Failed") return; // it ended for good before
    const plan = planPod(this.#pod);
    const disks = await this.#schedule(plan);
    if (disks === undefined) return;
    const { interrupted, lastTermination } = this.#report.view;
    if (interrupted && plan.restartPolicy === "Never" && lastTermination !== undefined) {
      this.#set({ phase: "Failed", state: { terminated: lastTermination } });
      return;
    }
    if (plan.image !== this.#deps.kit.agent.image) return this.#refuseImage(plan);

    const ip = await this.#deps.addresses.take();
    try {
      this.#set({ ip, startTime: this.#report.view.startTime ?? kubeTime(new Date()) });
      const place = { nodeName: this.#deps.nodeName, podIp: ip, hostIp: this.#deps.addresses.hostIp };
      await this.#keepRunning(podLaunchOf(this.#deps.kit, this.#pod, plan, place, disks), plan, ip);
    } finally {
      this.#deps.addresses.giveBack(ip);
    }
  }

  /** Waits for the pod's disks and binds the pod to this node. Undefined when it is to stop first. */
  async #schedule(plan: PodPlan): Promise<ReadonlyMap<string, string> | undefined> {
    const { volumes, api, nodeName } = this.#deps;
    const namespace = this.#pod.metadata.namespace ?? "";
    const scheduled = textOf(recordOf(this.#pod.spec).nodeName) !== undefined;
    const disks = new Map<string, string>();
    for (const volume of plan.volumes) {
      if (volume.t !== "claim") continue;
      const waiting = (why: string) => this.#set({ unscheduled: why });
      const wanted = { namespace, name: volume.claim, scheduled };
      const held = await volumes.hold(wanted, waiting, this.#stopping.signal);
      if (held === undefined) return undefined;
      this.#held.push(held);
      disks.set(volume.name, held.path);
    }
    if (this.#stopping.signal.aborted) return undefined;
    if (!scheduled) {
      await api.bind(refOf(pods, this.#pod), { uid: this.uid, nodeName });
      this.#deps.record(
        this.#pod,
        "Normal",
        "Scheduled",
        `Successfully assigned ${namespace}/${this.#pod.metadata.name} to ${nodeName}`,
      );
    }
    this.#report.update({ unscheduled: undefined }); // stored with the next change
    return disks;
  }

  async #refuseImage(plan: PodPlan): Promise<void> {
    const message = `This node has one image, ${this.#deps.kit.agent.image}; it cannot pull "${plan.image}"`;
    this.#deps.record(this.#pod, "Warning", "Failed", message);
    this.#set({ phase: "Pending", state: { waiting: { reason: "ErrImagePull", message } } });
    await sleep(imageBackoffMs, this.#stopping.signal);
    if (this.#stopping.signal.aborted) return;
    this.#set({ state: { waiting: { reason: "ImagePullBackOff", message } } });
  }

  async #keepRunning(launch: PodLaunch, plan: PodPlan, ip: string): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const began = Date.now();
      const exit = await this.#runOnce(launch, plan, ip);
      if (signal.aborted) return;
      if (!this.#mayRestart(plan, exit.code)) {
        this.#set({ phase: exit.code === 0 ? "Succeeded" : "Failed" });
        return;
      }
      await this.#backOff(this.#backoff.nextMs(Date.now() - began), plan, exit);
      if (signal.aborted) return;
      const { state } = this.#report.view;
      this.#report.update({
        restartCount: this.#report.view.restartCount + 1,
        ...("terminated" in state ? { lastTermination: state.terminated } : {}),
      });
    }
  }

  /** Starts the container and waits for its end, probing meanwhile. */
  async #runOnce(launch: PodLaunch, plan: PodPlan, ip: string): Promise<ContainerExit> {
    const prepared = await launch.launchPlan(this.#output).catch((error: unknown) => ({ failed: messageOf(error) }));
    if ("failed" in prepared) return this.#notCreated(prepared.failed);
    const process = new ContainerProcess(prepared);
    this.#process = process;
    if (this.#stopping.signal.aborted) this.#terminate(process);
    const probing = new AbortController();
    const { started } = await process.settled;
    const startedAt = kubeTime(new Date());
    const containerId = `holdfast://${this.uid}/${this.#report.view.restartCount}`;
    if (started) {
      this.#deps.record(this.#pod, "Normal", "Started", `Started container ${plan.container}`);
      this.#set({
        phase: "Running",
        state: { running: { startedAt } },
        containerId,
        started: plan.startup === undefined,
        ready: plan.startup === undefined && plan.readiness === undefined,
      });
      this.#probe(launch, plan, ip, process, probing.signal);
    }
    const exit = await process.ended;
    this.#process = undefined;
    this.#cancelKill();
    // A restart for failed liveness had its own deadline; the next run's stop has another.
    if (!this.#stopping.signal.aborted) this.#killAt = Number.POSITIVE_INFINITY;
    probing.abort();
    const { complaint } = exit;
    const terminated: Termination = {
      exitCode: exit.code,
      reason: exit.started ? (exit.code === 0 ? "Completed" : "Error") : "StartError",
      ...(complaint === "" ? {} : { message: complaint }),
      startedAt,
      finishedAt: kubeTime(new Date()),
      containerID: containerId,
    };
    if (!exit.started && !this.#stopping.signal.aborted)
      this.#deps.record(this.#pod, "Warning", "Failed", `Error: the container was not started: ${complaint}`);
    this.#set({ state: { terminated }, started: false, ready: false });
    return exit;
  }

  #notCreated(message: string): ContainerExit {
    this.#deps.record(this.#pod, "Warning", "Failed", `Error: the container was not created: ${message}`);
    this.#set({
      state: { terminated: { exitCode: 128, reason: "StartError", message } },
      started: false,
      ready: false,
    });
    return { code: 128, started: false, complaint: message };
  }

  async #backOff(delayMs: number, plan: PodPlan, exit: ContainerExit): Promise<void> {
    if (delayMs === 0) return;
    const message = `back-off ${delayMs / 1000}s restarting failed container=${plan.container}`;
    this.#deps.record(this.#pod, "Warning", "BackOff", message);
    const { state } = this.#report.view;
    const ended = "terminated" in state ? state.terminated : undefined;
    const reason = exit.started ? "CrashLoopBackOff" : "RunContainerError";
    this.#set({ state: { waiting: { reason, message } }, lastTermination: ended });
    await sleep(delayMs, this.#stopping.signal);
  }

  #mayRestart(plan: PodPlan, code: number): boolean {
    return plan.restartPolicy === "Always" || (plan.restartPolicy === "OnFailure" && code !== 0);
  }

  #probe(launch: PodLaunch, plan: PodPlan, ip: string, process: ContainerProcess, signal: AbortSignal): void {
    const inside = (command: readonly string[]) =>
      process.running === undefined ? undefined : launch.inside(command, process.running);
    const listener: ContainerProbesListener = {
      onStarted: () => this.#set({ started: true, ready: plan.readiness === undefined }),
      onReady: (ready) => this.#set({ ready }),
      onFailure: (kind, message) =>
        this.#deps.record(this.#pod, "Warning", "Unhealthy", `${kind} probe failed: ${message}`),
      onUnhealthy: (kind) => {
        this.#deps.record(this.#pod, "Normal", "Killing", `Container ${plan.container} failed its ${kind} probe`);
        this.#killBy(Date.now() + plan.graceMs);
        this.#terminate(process);
      },
    };
    probeContainer(plan, { ip, inside, execProbes: this.#deps.execProbes }, listener, signal).catch((error: unknown) =>
      this.#deps.log.error({ err: error }, "probing stopped"),
    );
  }

  #terminate(process: ContainerProcess): void {
    process.terminate().catch((error: unknown) => this.#deps.log.error({ err: error }, "TERM was not sent"));
    this.#armKill();
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
      process.kill().catch((error: unknown) => this.#deps.log.error({ err: error }, "KILL was not sent"));
    });
  }

  #reject(error: UnsupportedPodError): void {
    this.#deps.record(this.#pod, "Warning", "Failed", error.message);
    this.#set({ phase: "Failed", reason: "UnsupportedPodSpec", message: error.message });
  }

  #set(change: Partial<PodView>): void {
    this.#status.write(this.#report.update(change));
  }

  /** Nothing runs any more. Cleans up and, for a deletion, lets the object go: last, so that gone means gone. */
  async #finish(): Promise<void> {
    const { kit, log, api } = this.#deps;
    for (const held of this.#held) held.release();
    await new Promise<void>((resolve) => {
      this.#output.end(resolve);
    });
    if (this.#leaving === "nodeStop") {
      await this.#status.flush();
      return;
    }
    const { state } = this.#report.view;
    if (this.#leaving === "deleted" && "terminated" in state) {
      this.#set({ phase: state.terminated.exitCode === 0 ? "Succeeded" : "Failed" });
      await this.#status.flush();
    }
    for (const path of [kit.paths.pod(this.uid), this.#logPath, `${this.#logPath}.1`])
      await rm(path, { recursive: true, force: true }).catch((error: unknown) =>
        log.error({ err: error, path }, "what a pod left behind could not be removed"),
      );
    while (this.#leaving === "deleted" && !this.#unwritable.signal.aborted) {
      try {
        await api.delete(refOf(pods, this.#pod), { gracePeriodSeconds: 0, preconditions: { uid: this.uid } });
        return;
      } catch (error) {
        if (isApiStatus(error, 404) || isApiStatus(error, 409)) return; // gone, or another pod by that name
        log.warn({ err: error }, "the pod's object was not deleted; trying again");
        await sleep(deleteRetryMs, this.#unwritable.signal);
      }
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
