import { mkdir, readdir, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { Logger } from "pino";
import type { NodeFaultActions, NodeFaultPoints, PodPlace } from "../faults/node-faults.ts";
import type { KubeObject, ResourceApi } from "../resource-api.ts";
import { AddressCuts } from "./address-cuts.ts";
import { AddressPool } from "./address-pool.ts";
import { ControlGroups } from "./control-groups.ts";
import { EventRecorder } from "./event-recorder.ts";
import { type Follower, follow, sleep } from "./follow.ts";
import type { Isolation } from "./isolation.ts";
import { recordOf, textOf } from "./json-shape.ts";
import { LeftOvers } from "./left-overs.ts";
import { NodeFaultHands, noFaults } from "./node-fault-hands.ts";
import { ensureNodeObject, reportNode, reportNodeStopped } from "./node-object.ts";
import { NodePaths } from "./node-paths.ts";
import type { PodDependencies } from "./pod-dependencies.ts";
import { type AgentProgram, writeSkeleton } from "./pod-root.ts";
import { PodRunner } from "./pod-runner.ts";
import { probeIsolation } from "./probe-isolation.ts";
import { relaxationsOf } from "./relaxations.ts";
import { claims, pods } from "./resources.ts";
import { type BackoffSpan, kubeletBackoff } from "./restart-backoff.ts";
import { Slots } from "./slots.ts";
import { VolumeStore } from "./volume-store.ts";

export interface LocalNodeOptions {
  readonly api: ResourceApi;
  readonly dataDir: string;
  readonly agent: AgentProgram;
  readonly log: Logger;
  /** The version at which the API's store was opened, where it is known (see VolumeStore). */
  readonly storeOpenedAt?: number;
  /** Where rules may hold a pod up; absent: nowhere. */
  readonly faults?: NodeFaultPoints;
  /** How failed containers and images wait; absent: as with a kubelet. For tests. */
  readonly backoff?: BackoffSpan;
  /** How long its pods may take to end when the node stops; absent: 5 s. For tests. */
  readonly stopGraceMs?: number;
}

/** The one node of an embedded cluster: scheduler and kubelet in this process. */
export interface LocalNode {
  readonly name: string;
  readonly isolation: Isolation;
  /** What this node does less strictly than a real one: one sentence each, for people. */
  readonly relaxations: readonly string[];
  /** What this node does when it is told to. */
  readonly faults: NodeFaultActions;
  /** Stops every pod and keeps its object and its disks. */
  stop(): Promise<void>;
}

const nodeName = "local-node";
export const stopGraceDefaultMs = 5_000;
/** How long the start waits for what deleted pods left behind; then it goes on, and they are waited for beside it. */
const tidyPatienceMs = 5_000;
const ours = "default-scheduler";

/** Starts the node: it takes up the pods that the API has, then follows it until `stop`. */
export async function startLocalNode(options: LocalNodeOptions): Promise<LocalNode> {
  const { api, agent, log } = options;
  const paths = new NodePaths(resolve(options.dataDir));
  for (const folder of [paths.node, paths.pods, paths.volumes, paths.trash, paths.logs])
    await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeSkeleton(paths, agent);
  const groups = await ControlGroups.open(resolve(options.dataDir));
  const kit = await probeIsolation(paths, agent, groups, log);
  const relaxations = relaxationsOf(kit);
  // Whoever starts the node says its relaxations; isolation that the kernel refuses is a warning of its own.
  const level = kit.isolation === "namespaces" ? "debug" : "warn";
  for (const relaxation of relaxations) log[level]({ isolation: kit.isolation }, relaxation);

  const nodeUid = await ensureNodeObject(api, nodeName);
  const addresses = await AddressPool.claim();
  try {
    const { hostIp } = addresses;
    await reportNode(api, { name: nodeName, isolation: kit.isolation, relaxations, hostIp, image: agent.image });
  } catch (error) {
    await addresses.close();
    throw error;
  }
  const leaving = new AbortController();
  const { storeOpenedAt } = options;
  const { isolation } = kit;
  const volumes = new VolumeStore({ api, paths, isolation, nodeUid, storeOpenedAt, log, signal: leaving.signal });
  const recorder = new EventRecorder(api, "kubelet", nodeName, log);
  const execProbes = new Slots(Math.max(2, availableParallelism()));
  const starts = new Slots(4 * Math.max(2, availableParallelism()));
  const { record } = recorder;
  // Before anything follows the claims: a disk that something still writes to is nobody else's.
  const leftOvers = await LeftOvers.find({ paths, volumes, log }, leaving.signal);
  const { faults = noFaults, backoff = kubeletBackoff, stopGraceMs = stopGraceDefaultMs } = options;
  const shared = {
    api,
    nodeName,
    kit,
    addresses,
    volumes,
    leftOvers,
    faults,
    record,
    execProbes,
    starts,
    backoff,
    log,
  };
  const running = new RunningPods(shared, paths);
  const cuts = await AddressCuts.open((address) => addresses.isOurs(address));
  const hands = new NodeFaultHands((place) => running.find(place), cuts);

  const following = [
    follow(api, claims, volumes, leaving.signal, log),
    follow(api, pods, running, leaving.signal, log),
  ];
  await running.takenUp;
  let stopping: Promise<void> | undefined;
  const stop = async () => {
    leaving.abort();
    await Promise.all(following);
    await running.halt(stopGraceMs);
    await Promise.all([volumes.idle(), recorder.idle(), addresses.close(), cuts.close()]);
    await reportNodeStopped(api, nodeName).catch((error: unknown) =>
      log.warn({ err: error }, "the Node object still says that the node is ready"),
    );
  };
  return {
    name: nodeName,
    isolation: kit.isolation,
    relaxations,
    faults: hands,
    stop: () => {
      stopping ??= stop();
      return stopping;
    },
  };
}

/** The pods of this node, by uid: a name may already be another pod's. */
class RunningPods implements Follower {
  readonly #deps: PodDependencies;
  readonly #paths: NodePaths;
  readonly #runners = new Map<string, PodRunner>();
  readonly #takenUp = Promise.withResolvers<void>();
  #tidied = false;

  constructor(deps: PodDependencies, paths: NodePaths) {
    this.#deps = deps;
    this.#paths = paths;
  }

  /** Resolves when the pods that there were at the start no longer claim what was true before the node stopped. */
  get takenUp(): Promise<void> {
    return this.#takenUp.promise;
  }

  async onList(items: readonly KubeObject[]): Promise<void> {
    const uids = new Set(items.map((item) => item.metadata.uid ?? ""));
    for (const [uid, runner] of this.#runners) if (!uids.has(uid)) runner.forget();
    if (!this.#tidied) {
      await this.#tidy(uids);
      this.#tidied = true;
    }
    for (const item of items) this.onChange(item);
    await Promise.all([...this.#runners.values()].map((runner) => runner.takenUp));
    this.#takenUp.resolve();
  }

  onChange(pod: KubeObject): void {
    const uid = pod.metadata.uid ?? "";
    if (!/^[\w-]+$/.test(uid)) {
      this.#deps.log.error({ uid }, "a pod's uid is no file name; it is not run");
      return;
    }
    const boundTo = textOf(recordOf(pod.spec).nodeName);
    if (boundTo !== undefined && boundTo !== nodeName) return;
    // An unplaced pod that asks for another scheduler is that one's to place.
    if (boundTo === undefined && (textOf(recordOf(pod.spec).schedulerName) ?? ours) !== ours) return;
    const known = this.#runners.get(uid);
    if (known !== undefined) {
      known.observe(pod);
      return;
    }
    const runner = new PodRunner(pod, this.#deps);
    this.#runners.set(uid, runner);
    runner.done.then(
      () => this.#runners.delete(uid),
      (error: unknown) => this.#deps.log.error({ err: error, uid }, "a pod's runner failed"),
    );
  }

  onGone(pod: KubeObject): void {
    this.#runners.get(pod.metadata.uid ?? "")?.forget();
  }

  async halt(graceMs: number): Promise<void> {
    await Promise.all([...this.#runners.values()].map((runner) => runner.halt(graceMs)));
  }

  /** The pod of that name that is not over for this node. */
  find({ namespace = "default", name }: PodPlace): PodRunner | undefined {
    return [...this.#runners.values()].find((runner) => runner.isOf(namespace, name));
  }

  /** Removes what pods left that were deleted while the node was away, once their processes are gone. Nothing there outlives a pod. */
  async #tidy(uids: ReadonlySet<string>): Promise<void> {
    const { leftOvers, log } = this.#deps;
    const found = new Set([...(await readdir(this.#paths.pods)), ...(await readdir(this.#paths.logs))]);
    const removals = [...found]
      .filter((uid) => !uids.has(uid))
      .map(async (uid) => {
        if (!(await leftOvers.gone(uid))) return;
        for (const folder of [this.#paths.pod(uid), this.#paths.podLogs(uid)])
          await rm(folder, { recursive: true, force: true });
      });
    const done = Promise.all(removals).catch((error: unknown) =>
      log.error({ err: error }, "what deleted pods left behind could not be removed"),
    );
    const late = new AbortController();
    const patience = sleep(tidyPatienceMs, late.signal).then(() => "late" as const);
    if ((await Promise.race([done, patience])) === "late")
      log.warn("a process of a deleted pod does not end, although it was killed; its disks stay locked until it does");
    late.abort();
  }
}
