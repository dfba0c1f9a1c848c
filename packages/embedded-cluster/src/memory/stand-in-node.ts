import type { Logger } from "pino";
import { isApiStatus } from "../api-status-error.ts";
import { type Clock, pause } from "../clock.ts";
import type { NodeFaultRules } from "../faults/node-fault-rules.ts";
import { type NodeFaultActions, NoSuchPodError, type PodPlace } from "../faults/node-faults.ts";
import { listIn, stringIn, valueAt } from "../json.ts";
import type { KubeObject, ObjectRef, ResourceApi, ResourceRef } from "../resource-api.ts";
import { factsOf, type PodFacts, statusOf, terminated, waiting } from "./pod-status.ts";

const pods: ResourceRef = { group: "", version: "v1", plural: "pods" };
const claims: ResourceRef = { group: "", version: "v1", plural: "persistentvolumeclaims" };

/** What a node does with a pod next: `bind` it, `start` its containers, find it `ready`, `finish` one that is deleted. */
export type StepName = "bind" | "start" | "ready" | "finish";

export interface NodeStep {
  readonly step: StepName;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * A node without processes: it writes what a kubelet would write. `auto` takes every step as soon as it can be taken;
 * else nothing happens to a pod but by the test's word. It acts on what its own watch has told it, so its view can be
 * made old like any other.
 */
export interface StandInNode extends NodeFaultActions {
  readonly name: string;
  /** The steps that could be taken now, by name; each pod has one at most. */
  steps(): readonly NodeStep[];
  /** Takes one step, the first by default. Resolves with it when it is stored or the API has refused it for good, or with undefined if there was none. */
  take(step?: NodeStep): Promise<NodeStep | undefined>;
  /** Takes steps until there is none. */
  takeAll(): Promise<void>;
  /** The container ended by itself; by the pod's restartPolicy it is started again (restartCount + 1, not ready) or the pod is over. */
  exit(pod: PodPlace, exitCode: number): Promise<void>;
  /** The readiness probe says so. */
  setReady(pod: PodPlace, ready: boolean): Promise<void>;
  /** Tells whether an address has been cut off. */
  isCut(address: string): boolean;
}

export interface StandInNodeOptions {
  readonly api: ResourceApi;
  readonly clock: Clock;
  readonly log: Logger;
  readonly rules: NodeFaultRules;
  readonly auto: boolean;
  /** Gives the address of a pod that is started; by default one in 127.200.0.0/16 that no other pod had. */
  readonly addressOf?: (pod: KubeObject) => string;
}

const nodeName = "stand-in-node";
const nodeAddress = "127.0.0.1";
const pullRetryMs = 1_000;
const firstRetryMs = 10;
const longestRetryMs = 1_000;

/** Starts the node. Resolves when its first list is in. */
export async function startStandInNode(
  options: StandInNodeOptions,
): Promise<StandInNode & { stop(): Promise<void>; readonly isIdle: boolean }> {
  const node = new ScriptedNode(options);
  await node.start();
  options.rules.useNode(node);
  return node;
}

class ScriptedNode implements StandInNode {
  readonly name = nodeName;
  readonly #options: StandInNodeOptions;
  /** What the watch has told, by uid. */
  readonly #seen = new Map<string, KubeObject>();
  readonly #busy = new Map<string, Promise<void>>();
  readonly #cut = new Set<string>();
  /** Uids of pods that are not ready until the test says so. */
  readonly #keptUnready = new Set<string>();
  readonly #stopping = new AbortController();
  readonly #listed = Promise.withResolvers<void>();
  #following: Promise<void> | undefined;
  #addresses = 0;

  constructor(options: StandInNodeOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#following = this.#follow();
    await this.#listed.promise;
  }

  async stop(): Promise<void> {
    this.#options.rules.useNode(undefined);
    this.#stopping.abort();
    await this.#following;
    await Promise.all(this.#busy.values());
  }

  get isIdle(): boolean {
    return this.#busy.size === 0;
  }

  steps(): readonly NodeStep[] {
    const found = [...this.#seen.values()].flatMap((pod) => this.#nextStep(pod) ?? []);
    return found.sort((a, b) => (`${a.namespace}/${a.name}/${a.uid}` < `${b.namespace}/${b.name}/${b.uid}` ? -1 : 1));
  }

  async take(wanted?: NodeStep): Promise<NodeStep | undefined> {
    const step = wanted ?? this.steps()[0];
    const pod = step === undefined ? undefined : this.#seen.get(step.uid);
    if (step === undefined || pod === undefined) return undefined;
    await this.#carryOut(step.step, pod);
    return step;
  }

  async takeAll(): Promise<void> {
    while ((await this.take()) !== undefined) await new Promise((resolve) => setImmediate(resolve)); // the watch tells
  }

  async exit(place: PodPlace, exitCode: number): Promise<void> {
    await this.#end(place, terminated(exitCode, exitCode === 0 ? "Completed" : "Error", this.#stamp()), exitCode);
  }

  async killContainer(place: PodPlace): Promise<void> {
    await this.#end(place, terminated(137, "Error", this.#stamp()), 137);
  }

  async setReady(place: PodPlace, ready: boolean): Promise<void> {
    const pod = this.#require(place);
    const { uid = "" } = pod.metadata;
    if (ready) this.#keptUnready.delete(uid);
    else this.#keptUnready.add(uid);
    await this.#report(pod, { ...factsOf(pod), ready });
  }

  async evict(place: PodPlace, message = "The node was low on resource: memory."): Promise<void> {
    const pod = this.#require(place);
    const state = terminated(137, "Error", this.#stamp());
    await this.#report(pod, { ...factsOf(pod), phase: "Failed", reason: "Evicted", message, ready: false, state });
  }

  async cutAddress(place: PodPlace): Promise<() => Promise<void>> {
    const { ip } = factsOf(this.#require(place));
    if (ip === undefined) throw new NoSuchPodError(place);
    this.#cut.add(ip);
    return async () => {
      this.#cut.delete(ip);
    };
  }

  isCut(address: string): boolean {
    return this.#cut.has(address);
  }

  async #end(place: PodPlace, ended: object, exitCode: number): Promise<void> {
    const pod = this.#require(place);
    const facts = factsOf(pod);
    const policy = stringIn(pod.spec, "restartPolicy") ?? "Always";
    const isOver = policy === "Never" || (policy === "OnFailure" && exitCode === 0);
    const phase = exitCode === 0 ? "Succeeded" : "Failed";
    if (isOver) return this.#report(pod, { ...facts, phase, ready: false, state: ended });
    const state = { running: { startedAt: this.#stamp() } };
    const restartCount = facts.restartCount + 1;
    return this.#report(pod, { ...facts, ready: false, restartCount, state, lastState: ended });
  }

  async #carryOut(step: StepName, pod: KubeObject): Promise<void> {
    const { rules, api, clock, addressOf } = this.#options;
    const { signal } = this.#stopping;
    if (step === "bind") {
      await rules.beforeScheduling(pod, (why) => void this.#sayUnschedulable(pod, why), signal);
      if (signal.aborted) return;
      await this.#bindClaims(pod);
      await this.#write(() => api.bind(refOf(pod), { uid: pod.metadata.uid ?? "", nodeName }));
    } else if (step === "start") {
      const image = stringIn(listIn(pod.spec, "containers")[0], "image") ?? "";
      const failure = rules.imagePullError(pod, image);
      if (failure !== undefined) {
        await this.#report(pod, { ...factsOf(pod), state: waiting("ErrImagePull", failure) });
        clock.schedule(pullRetryMs, () => this.#wake(pod.metadata.uid ?? ""));
        return;
      }
      await rules.beforeStart(pod, signal);
      if (signal.aborted) return;
      const ip = addressOf?.(pod) ?? this.#nextAddress();
      const state = { running: { startedAt: this.#stamp() } };
      await this.#report(pod, { phase: "Running", ip, ready: false, restartCount: 0, state });
    } else if (step === "ready") {
      await this.#report(pod, { ...factsOf(pod), ready: true });
    } else {
      const preconditions = { uid: pod.metadata.uid ?? "" };
      await this.#write(() => api.delete(refOf(pod), { gracePeriodSeconds: 0, preconditions }));
    }
  }

  async #bindClaims(pod: KubeObject): Promise<void> {
    for (const volume of listIn(pod.spec, "volumes")) {
      const name = valueAt(volume, "persistentVolumeClaim.claimName");
      if (typeof name !== "string") continue;
      const ref = { resource: claims, namespace: pod.metadata.namespace ?? "", name };
      const bound = { status: { phase: "Bound" } };
      await this.#write(() => this.#options.api.patch(ref, "application/merge-patch+json", bound, "status"));
    }
  }

  async #report(pod: KubeObject, facts: PodFacts): Promise<void> {
    // The uid keeps this status off another pod that has the name by now.
    const status = statusOf(pod, facts, nodeAddress, this.#stamp());
    const body = { metadata: { uid: pod.metadata.uid }, status };
    await this.#write(() => this.#options.api.patch(refOf(pod), "application/merge-patch+json", body, "status"));
  }

  async #sayUnschedulable(pod: KubeObject, message: string): Promise<void> {
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message };
    const at = this.#stamp();
    const status = { conditions: [{ ...condition, lastProbeTime: null, lastTransitionTime: at }] };
    const body = { metadata: { uid: pod.metadata.uid }, status };
    await this.#write(() => this.#options.api.patch(refOf(pod), "application/merge-patch+json", body, "status"));
  }

  /** Writes until the API has taken or refused it; of a refusal a node makes nothing but another look. */
  async #write(write: () => Promise<unknown>): Promise<void> {
    const { clock, log } = this.#options;
    const { signal } = this.#stopping;
    for (let retryMs = firstRetryMs; !signal.aborted; retryMs = Math.min(retryMs * 2, longestRetryMs)) {
      try {
        await write();
        return;
      } catch (error) {
        if ([404, 409, 422].some((code) => isApiStatus(error, code))) return;
        log.debug({ err: error }, "a stand-in node's write failed; trying again");
        await pause(clock, retryMs, signal);
      }
    }
  }

  async #follow(): Promise<void> {
    const { api, clock, log } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const { items, resourceVersion } = await api.list(pods);
        this.#seen.clear();
        for (const pod of items) this.#see(pod);
        this.#listed.resolve();
        for await (const event of api.watch(pods, resourceVersion, signal)) {
          if (event.type === "DELETED") this.#forget(event.object.metadata.uid ?? "");
          else this.#see(event.object);
        }
      } catch (error) {
        log.debug({ err: error }, "a stand-in node's watch ended; listing again");
      }
      if (!signal.aborted) await pause(clock, firstRetryMs, signal);
    }
  }

  #see(pod: KubeObject): void {
    const uid = pod.metadata.uid ?? "";
    this.#seen.set(uid, pod);
    this.#wake(uid);
  }

  #forget(uid: string): void {
    this.#seen.delete(uid);
    this.#keptUnready.delete(uid);
  }

  #wake(uid: string): void {
    if (!this.#options.auto || this.#busy.has(uid) || this.#stopping.signal.aborted) return;
    this.#busy.set(uid, this.#work(uid));
  }

  #nextStep(pod: KubeObject): NodeStep | undefined {
    const next = nextStepOf(pod);
    return next?.step === "ready" && this.#keptUnready.has(next.uid) ? undefined : next;
  }

  /** Takes a pod's steps one after another, as the watch tells of each. */
  async #work(uid: string): Promise<void> {
    await Promise.resolve(); // so that #busy is set before it is cleared
    for (let done: KubeObject | undefined; !this.#stopping.signal.aborted; ) {
      const pod = this.#seen.get(uid);
      const step = pod === undefined || pod === done ? undefined : this.#nextStep(pod);
      if (pod === undefined || step === undefined) break;
      await this.#carryOut(step.step, pod);
      done = pod; // its change wakes this pod again
    }
    this.#busy.delete(uid);
  }

  #require(place: PodPlace): KubeObject {
    const { namespace = "default", name } = place;
    const found = [...this.#seen.values()].find(
      ({ metadata, spec }) =>
        metadata.namespace === namespace && metadata.name === name && stringIn(spec, "nodeName") === nodeName,
    );
    if (found === undefined) throw new NoSuchPodError(place);
    return found;
  }

  #nextAddress(): string {
    this.#addresses++;
    return `127.200.${(this.#addresses >> 8) & 255}.${this.#addresses & 255}`;
  }

  #stamp(): string {
    return `${new Date(this.#options.clock.now()).toISOString().slice(0, 19)}Z`;
  }
}

function nextStepOf(pod: KubeObject): NodeStep | undefined {
  const { namespace = "", name, uid = "", deletionTimestamp } = pod.metadata;
  const place = { namespace, name, uid };
  const boundTo = stringIn(pod.spec, "nodeName") ?? "";
  if (boundTo === "") return deletionTimestamp === undefined ? { step: "bind", ...place } : undefined;
  if (boundTo !== nodeName) return undefined;
  if (deletionTimestamp !== undefined) return { step: "finish", ...place };
  const { phase, ready } = factsOf(pod);
  if (phase === "Pending") return { step: "start", ...place };
  return phase === "Running" && !ready ? { step: "ready", ...place } : undefined;
}

function refOf({ metadata }: KubeObject): ObjectRef {
  return { resource: pods, namespace: metadata.namespace ?? "", name: metadata.name };
}
