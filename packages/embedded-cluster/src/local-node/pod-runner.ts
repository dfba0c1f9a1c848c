import type { KubeObject } from "../resource-api.ts";
import { untilAborted } from "./follow.ts";
import type { HeldVolume } from "./held-disks.ts";
import { numberOf } from "./json-shape.ts";
import { PodContainers } from "./pod-containers.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { graceMsOf, planPod } from "./pod-plan.ts";
import { deletePodObject, removePodFolders } from "./pod-removal.ts";
import { PodReport, type PodView } from "./pod-report.ts";
import { schedulePod } from "./pod-scheduling.ts";
import { kubeTime } from "./resources.ts";
import { StatusWriter } from "./status-writer.ts";
import { UnprovenEndError } from "./unproven-end-error.ts";
import { UnsupportedPodError } from "./unsupported-pod-error.ts";

/** Why the node is done with a pod: its deletion, its object being gone already, or the node's own stop. */
type Leaving = "deleted" | "gone" | "nodeStop";

/** When it is worth telling people that an earlier run does not end. */
const slowPredecessorMs = 10_000;
/** How long a stopping node waits for an API that does not take a pod's last words. */
const writePatienceMs = 5_000;
/** And then for processes that do not end, for all that they were killed. */
const endPatienceMs = 5_000;

/** Runs one pod (one uid) from the first sight of it until nothing of it is left. */
export class PodRunner {
  readonly uid: string;
  /** Resolves when the pod is over for this node: everything ended and, unless the node stops, cleaned up. */
  readonly done: Promise<void>;
  readonly #takenUp = Promise.withResolvers<void>();
  readonly #deps: PodDependencies;
  readonly #report: PodReport;
  readonly #status: StatusWriter;
  /** Aborted when the containers are to stop, for whatever reason. */
  readonly #stopping = new AbortController();
  /** Aborted when the node is to be done with the pod. */
  readonly #left = new AbortController();
  /** Aborted when its object is gone, or the node cannot wait for the API any longer. */
  readonly #unwritable = new AbortController();
  readonly #containers: PodContainers;
  #pod: KubeObject;
  #leaving: Leaving | undefined;
  /** Resolves when the eviction that was asked for is stored. */
  #evicted: { readonly message: string; readonly stored: PromiseWithResolvers<void> } | undefined;
  #held: HeldVolume[] = [];
  #ip: string | undefined;
  /** False while something of it may live that the node does not run: then object and disks stay, for gone means gone. */
  #isClean = true;
  /** Nothing of it is started any more. */
  #hasRun = false;

  constructor(pod: KubeObject, deps: PodDependencies) {
    this.uid = pod.metadata.uid ?? "";
    this.#pod = pod;
    this.#deps = { ...deps, log: deps.log.child({ pod: pod.metadata.name, uid: this.uid }) };
    this.#report = new PodReport(pod, deps.addresses.hostIp);
    this.#status = new StatusWriter(deps.api, pod, this.#unwritable.signal, this.#deps.log);
    this.#containers = new PodContainers(this.#deps, this.#report, () => this.#set({}));
    this.done = this.#live();
    this.observe(pod);
  }

  /** Resolves when the object no longer claims what was true before the node stopped. */
  get takenUp(): Promise<void> {
    return this.#takenUp.promise;
  }

  /** Tells whether it is the pod of that name, and not over. */
  isOf(namespace: string, name: string): boolean {
    return (
      this.#pod.metadata.name === name && this.#pod.metadata.namespace === namespace && this.#leaving === undefined
    );
  }

  /** Its address while its containers may run. */
  get ip(): string | undefined {
    return this.#ip;
  }

  /** Takes in the pod's object as it now is. */
  observe(pod: KubeObject): void {
    this.#pod = pod;
    this.#report.observe(pod);
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

  /**
   * Stops the containers and keeps the object, for the next start of the node. Resolves when all has ended; a process
   * that nothing ends is left to the next start, which waits for it.
   */
  async halt(graceMs: number): Promise<void> {
    this.#leave("nodeStop", graceMs);
    const timers = [setTimeout(() => this.#unwritable.abort(), graceMs + writePatienceMs)];
    const late = new Promise<"late">((resolve) => {
      timers.push(setTimeout(() => resolve("late"), graceMs + writePatienceMs + endPatienceMs));
    });
    if ((await Promise.race([this.done, late])) === "late")
      this.#deps.log.error("a pod's processes did not end although they were killed; the next start waits for them");
    for (const timer of timers) clearTimeout(timer);
  }

  /** Ends the pod as a kubelet under pressure does. Resolves when it is stored that the pod Failed, or it is over otherwise. */
  async evict(message: string): Promise<void> {
    if (["Succeeded", "Failed"].includes(this.#report.phase)) return; // a pod that has ended is not evicted
    this.#evicted ??= { message, stored: Promise.withResolvers<void>() };
    this.#deps.record(this.#pod, "Warning", "Evicted", message);
    this.#stopContainers(Date.now() + graceMsOf(this.#pod));
    if (this.#hasRun) await this.#sayEvicted(this.#evicted);
    await Promise.race([this.#evicted.stored.promise, this.done]);
  }

  /** Kills a container, the first if none is named. False where it does not run. */
  kill(container: string | undefined): Promise<boolean> {
    return this.#containers.kill(container);
  }

  #leave(why: Leaving, graceMs: number): void {
    this.#leaving ??= why;
    if (why === "gone") this.#leaving = why;
    this.#stopContainers(Date.now() + graceMs);
    this.#left.abort();
  }

  #stopContainers(killAt: number): void {
    this.#stopping.abort();
    this.#containers.stop(killAt);
  }

  async #live(): Promise<void> {
    try {
      // What the object says of readiness and address is from before the node stopped.
      if (this.#report.interrupted) this.#set({});
      await this.#status.flush();
      this.#takenUp.resolve();
      if (await this.#predecessorGone()) await this.#run();
    } catch (error) {
      if (error instanceof UnprovenEndError) this.#isClean = false;
      if (error instanceof UnsupportedPodError) this.#reject(error);
      else this.#fail(error);
    }
    this.#hasRun = true;
    if (this.#evicted !== undefined && this.#leaving !== "gone") await this.#sayEvicted(this.#evicted);
    if (this.#report.view.ended !== undefined && this.#isClean) this.#releaseDisks(); // nothing of it ever runs again
    await untilAborted(this.#left.signal);
    await this.#finish();
  }

  /** A process tree of an earlier life of the node may still be dying. Two must never share a disk. False when the node stops first. */
  async #predecessorGone(): Promise<boolean> {
    const { leftOvers, record } = this.#deps;
    if (!leftOvers.has(this.uid)) return true;
    const why = "a process of the pod's earlier run does not end, although it was killed; nothing runs in its place";
    const slow = setTimeout(() => record(this.#pod, "Warning", "FailedKillPod", why), slowPredecessorMs);
    const gone = await leftOvers.gone(this.uid);
    clearTimeout(slow);
    this.#isClean = gone;
    return gone;
  }

  async #run(): Promise<void> {
    if (this.#report.view.ended !== undefined) return; // it ended for good before
    const plan = planPod(this.#pod);
    const disks = await schedulePod(
      {
        ...this.#deps,
        pod: this.#pod,
        plan,
        sayUnscheduled: (why) =>
          why === undefined ? this.#report.update({ unscheduled: why }) : this.#set({ unscheduled: why }),
        onHeld: (held) => this.#held.push(held),
      },
      this.#stopping.signal,
    );
    if (disks === undefined) return;
    await this.#deps.faults.beforeStart(this.#pod, this.#stopping.signal);
    if (this.#stopping.signal.aborted) return;
    const ip = await this.#deps.addresses.take();
    try {
      this.#ip = ip;
      this.#set({ ip, startTime: this.#report.view.startTime ?? kubeTime(new Date()) });
      const place = { nodeName: this.#deps.nodeName, podIp: ip, hostIp: this.#deps.addresses.hostIp };
      await this.#containers.run(plan, { pod: this.#pod, plan, place, disks });
      if (!this.#stopping.signal.aborted && plan.restartPolicy !== "Always") this.#endForGood();
    } finally {
      this.#ip = undefined;
      this.#deps.addresses.giveBack(ip);
    }
  }

  /** Says, once for all, how a pod ended whose containers are not started again. */
  #endForGood(): void {
    const { phase } = this.#report;
    if (phase === "Succeeded" || phase === "Failed") this.#set({ ended: phase });
  }

  #reject(error: UnsupportedPodError): void {
    this.#deps.record(this.#pod, "Warning", "Failed", error.message);
    this.#set({ ended: "Failed", reason: "UnsupportedPodSpec", message: error.message });
  }

  #fail(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.#deps.log.error({ err: error }, "the pod cannot be run");
    this.#deps.record(this.#pod, "Warning", "Failed", message);
    this.#report.failWaiting("CreateContainerError", message);
    this.#set({});
  }

  async #sayEvicted({ message, stored }: { message: string; stored: PromiseWithResolvers<void> }): Promise<void> {
    if (this.#report.view.ended === undefined)
      this.#set({
        ended: "Failed",
        reason: "Evicted",
        message,
        disruption: { reason: "TerminationByKubelet", message },
      });
    await this.#status.flush();
    stored.resolve();
  }

  #set(change: Partial<PodView>): void {
    this.#report.update(change);
    this.#status.write(this.#report.render());
  }

  #releaseDisks(): void {
    for (const held of this.#held.splice(0)) held.release();
  }

  /** Nothing runs any more. Cleans up and, for a deletion, lets the object go: last, so that gone means gone. */
  async #finish(): Promise<void> {
    const { kit, log, api } = this.#deps;
    if (this.#isClean) this.#releaseDisks();
    if (this.#leaving === "nodeStop" || !this.#isClean) {
      await this.#status.flush();
      return;
    }
    if (this.#leaving === "deleted") {
      this.#sayHowItEnded();
      await this.#status.flush();
    }
    await removePodFolders(kit.paths, this.uid, log);
    if (this.#leaving === "deleted") await deletePodObject(api, this.#pod, this.#unwritable.signal, log);
  }

  /** The last word on a pod that is deleted, where its containers ran: all of them ended. */
  #sayHowItEnded(): void {
    if (this.#report.view.ended !== undefined) return;
    const codes = this.#report.containers.map(({ state }) =>
      "terminated" in state ? state.terminated.exitCode : undefined,
    );
    if (codes.every((code) => code !== undefined))
      this.#set({ ended: codes.every((code) => code === 0) ? "Succeeded" : "Failed" });
  }
}
