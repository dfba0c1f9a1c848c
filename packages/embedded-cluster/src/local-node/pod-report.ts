import type { KubeObject } from "../resource-api.ts";
import { type ContainerView, containerStatusOf, ranBefore, readContainerView } from "./container-view.ts";
import { type JsonRecord, recordOf, recordsOf, textOf } from "./json-shape.ts";
import { type BareCondition, type Condition, conditionsOf, isForeign, readConditions } from "./pod-conditions.ts";
import { type PodPhase, phaseOf } from "./pod-phase.ts";
import type { RestartPolicy } from "./pod-plan.ts";
import { kubeTime } from "./resources.ts";

/** What is known of a pod right now, beside its containers. */
export interface PodView {
  /** Set when the pod ended for good, whatever its containers say. */
  readonly ended: "Succeeded" | "Failed" | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  /** Why the pod is not on a node yet; undefined when it is. */
  readonly unscheduled: string | undefined;
  readonly ip: string | undefined;
  readonly startTime: string | undefined;
  /** Why the pod was made to leave, where that was nobody's deletion. */
  readonly disruption: { readonly reason: string; readonly message: string } | undefined;
}

interface Entry {
  readonly name: string;
  readonly image: string;
  readonly isInit: boolean;
  view: ContainerView;
}

/** One pod's status as Kubernetes words it. Remembers since when each condition holds. */
export class PodReport {
  /** A container ran when the node stopped or died, and not since. */
  readonly interrupted: boolean;
  readonly #hostIp: string;
  readonly #policy: RestartPolicy;
  readonly #entries: readonly Entry[];
  #conditions: ReadonlyMap<string, Condition>;
  /** Conditions that others set, DisruptionTarget for one; a status is stored whole, so they are stored again with it. */
  #foreign: readonly Condition[] = [];
  #view: PodView;

  constructor(pod: KubeObject, hostIp: string) {
    const [spec, status] = [recordOf(pod.spec), recordOf(pod.status)];
    const policy = textOf(spec.restartPolicy);
    this.#policy = policy === "OnFailure" || policy === "Never" ? policy : "Always";
    this.#hostIp = hostIp;
    this.#conditions = readConditions(status);
    const phase = textOf(status.phase);
    const ended = phase === "Succeeded" || phase === "Failed" ? phase : undefined;
    const disruption = this.#conditions.get("DisruptionTarget");
    this.#view = {
      ended,
      reason: textOf(status.reason),
      message: textOf(status.message),
      unscheduled: undefined,
      ip: undefined,
      startTime: textOf(status.startTime),
      disruption:
        disruption === undefined ? undefined : { reason: disruption.reason ?? "", message: disruption.message ?? "" },
    };
    const inits = recordsOf(spec.initContainers);
    const waitingFor = inits.length > 0 ? "PodInitializing" : "ContainerCreating";
    const read =
      (isInit: boolean, statuses: readonly JsonRecord[]) =>
      (container: JsonRecord): Entry => {
        const name = textOf(container.name) ?? "";
        const stored = recordOf(statuses.find((entry) => entry.name === name));
        // What prepares the pod is run again with it: its network and its processes are new.
        const view = readContainerView(stored, {
          policy: isInit ? "Always" : this.#policy,
          waitingFor,
          terminal: ended !== undefined,
        });
        return { name, image: textOf(container.image) ?? "", isInit, view };
      };
    const stored = { inits: recordsOf(status.initContainerStatuses), mains: recordsOf(status.containerStatuses) };
    this.#entries = [
      ...inits.map(read(true, stored.inits)),
      ...recordsOf(spec.containers).map(read(false, stored.mains)),
    ];
    this.interrupted = ended === undefined && [...stored.inits, ...stored.mains].some(ranBefore);
  }

  /** Takes in what others wrote in the pod's status. */
  observe(pod: KubeObject): void {
    this.#foreign = [...readConditions(recordOf(pod.status)).values()].filter(isForeign);
  }

  get view(): PodView {
    return this.#view;
  }

  get phase(): PodPhase {
    return this.#view.ended ?? phaseOf(this.#policy, this.#viewsOf(true), this.#viewsOf(false));
  }

  container(name: string): ContainerView {
    return this.#entry(name).view;
  }

  /** The views of the containers that are not there to prepare the pod. */
  get containers(): readonly ContainerView[] {
    return this.#viewsOf(false);
  }

  /** Changes what is known of the pod. */
  update(change: Partial<PodView>): void {
    this.#view = { ...this.#view, ...change };
  }

  /** Changes what is known of one container. */
  updateContainer(name: string, change: Partial<ContainerView>): void {
    const entry = this.#entry(name);
    entry.view = { ...entry.view, ...change };
  }

  /** Has every container that never started wait for this reason. */
  failWaiting(reason: string, message: string): void {
    for (const entry of this.#entries)
      if ("waiting" in entry.view.state) entry.view = { ...entry.view, state: { waiting: { reason, message } } };
  }

  /** The whole status to store. */
  render(): object {
    const view = this.#view;
    const conditions = this.#withTimes(
      conditionsOf({
        phase: this.phase,
        unscheduled: view.unscheduled,
        hasAddress: view.ip !== undefined && this.#entries.some((entry) => !("terminated" in entry.view.state)),
        incomplete: this.#namesOf(true, ({ state }) => !("terminated" in state && state.terminated.exitCode === 0)),
        unready: this.#namesOf(false, ({ ready }) => !ready),
        disruption: view.disruption,
      }),
    );
    this.#conditions = new Map(conditions.map((condition) => [condition.type, condition]));
    const others = this.#foreign.filter((condition) => !this.#conditions.has(condition.type));
    const onNode = view.unscheduled === undefined;
    const hasInits = this.#entries.some((entry) => entry.isInit);
    return {
      phase: this.phase,
      // null takes a member away in a merge patch
      reason: view.reason ?? null,
      message: view.message ?? null,
      hostIP: onNode ? this.#hostIp : null,
      hostIPs: onNode ? [{ ip: this.#hostIp }] : null,
      podIP: view.ip ?? null,
      podIPs: view.ip === undefined ? null : [{ ip: view.ip }],
      startTime: view.startTime ?? null,
      conditions: [...others, ...conditions],
      ...(hasInits ? { initContainerStatuses: onNode ? this.#statusesOf(true) : null } : {}),
      containerStatuses: onNode ? this.#statusesOf(false) : null,
    };
  }

  #withTimes(conditions: readonly BareCondition[]): Condition[] {
    const now = kubeTime(new Date());
    return conditions.map((condition) => {
      const old = this.#conditions.get(condition.type);
      const lastTransitionTime = old?.status === condition.status ? old.lastTransitionTime : now;
      return { ...condition, lastProbeTime: null, lastTransitionTime };
    });
  }

  #entry(name: string): Entry {
    const entry = this.#entries.find((candidate) => candidate.name === name);
    if (entry === undefined) throw new Error(`the pod has no container ${name}`);
    return entry;
  }

  #viewsOf(isInit: boolean): readonly ContainerView[] {
    return this.#entries.filter((entry) => entry.isInit === isInit).map((entry) => entry.view);
  }

  #namesOf(isInit: boolean, such: (view: ContainerView) => boolean): readonly string[] {
    return this.#entries.filter((entry) => entry.isInit === isInit && such(entry.view)).map((entry) => entry.name);
  }

  #statusesOf(isInit: boolean): readonly object[] {
    return this.#entries
      .filter((entry) => entry.isInit === isInit)
      .map((entry) => containerStatusOf(entry.view, entry.name, entry.image));
  }
}
